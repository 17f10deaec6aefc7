from django.urls import path

from kafkadash.clusters import views
from kafkadash.clusters import views as role_views

app_name = "clusters"

urlpatterns = [
    path("settings/", views.overview, name="settings"),
    path("settings/register/", views.register, name="register"),
    path("settings/roles/", role_views.everywhere, name="roles_everywhere"),
    path("settings/clusters/<slug:slug>/", views.cluster, name="cluster"),
    path("settings/clusters/<slug:slug>/enabled/", views.enabled, name="enabled"),
    path("settings/clusters/<slug:slug>/roles/", role_views.of_cluster, name="roles"),
    path("settings/clusters/<slug:slug>/remove/", views.remove, name="remove"),
]
