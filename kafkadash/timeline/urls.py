from django.urls import path

from kafkadash.timeline.pages import before_finding, closed_findings, timeline, timeline_export

app_name = "timeline"

urlpatterns = [
    path("clusters/<slug:slug>/timeline/", timeline, name="timeline"),
    path("clusters/<slug:slug>/timeline/export/", timeline_export, name="export"),
    path("clusters/<slug:slug>/timeline/closed/", closed_findings, name="closed_findings"),
    path("clusters/<slug:slug>/timeline/before/<slug:finding_id>/", before_finding, name="before_finding"),
]
