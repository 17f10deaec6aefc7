from django.urls import path

from kafkadash.ops import views

app_name = "ops"

urlpatterns = [
    path("livez", views.livez, name="livez"),
    path("readyz", views.readyz, name="readyz"),
]
