from django.urls import path

from kafkadash.verify import pages

app_name = "verify"

urlpatterns = [
    path("clusters/<slug:slug>/verify/", pages.verify, name="verify"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/", pages.verification, name="verification"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/again/", pages.verify_again, name="verify_again"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/stop/", pages.verify_stop, name="verify_stop"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/rest/", pages.propose_unfinished, name="propose_rest"),
]
