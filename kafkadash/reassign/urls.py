from django.urls import path

from kafkadash.reassign import verify_views

app_name = "reassign"

urlpatterns = [
    path("clusters/<slug:slug>/verify/", verify_views.verify, name="verify"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/", verify_views.verification, name="verification"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/again/", verify_views.verify_again, name="verify_again"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/stop/", verify_views.verify_stop, name="verify_stop"),
]
