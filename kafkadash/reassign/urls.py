from django.urls import path

from kafkadash.reassign import downloads, report_views, verify_views

app_name = "reassign"

urlpatterns = [
    path("changes/<int:number>/kafka.json", downloads.kafka_json, name="kafka_json"),
    path("changes/<int:number>/rollback.json", downloads.rollback_json, name="rollback_json"),
    path("changes/<int:number>/topics/<str:topic>/", report_views.topic_rows, name="topic_rows"),
    path("clusters/<slug:slug>/verify/", verify_views.verify, name="verify"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/", verify_views.verification, name="verification"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/again/", verify_views.verify_again, name="verify_again"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/stop/", verify_views.verify_stop, name="verify_stop"),
]
