from django.urls import path

from kafkadash.ops import audit as audit_views
from kafkadash.ops import health as views

app_name = "ops"

urlpatterns = [
    path("livez", views.livez, name="livez"),
    path("readyz", views.readyz, name="readyz"),
    path("audit/", audit_views.audit, name="audit"),
    path("audit/export/", audit_views.audit_export, name="audit_export"),
    path("audit/<int:event_id>/", audit_views.audit_event, name="audit_event"),
]
