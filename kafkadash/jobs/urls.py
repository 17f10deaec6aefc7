from django.urls import path

from kafkadash.jobs import views

app_name = "jobs"

urlpatterns = [
    path("settings/test/", views.test_unsaved, name="test_unsaved"),
    path("settings/clusters/<slug:slug>/test/", views.test, name="test"),
    path("settings/tests/<uuid:job_id>/", views.result, name="result"),
    path("settings/tests/<uuid:job_id>/cancel/", views.cancel, name="cancel"),
]
