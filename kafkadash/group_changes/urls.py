from django.urls import path

from kafkadash.group_changes import pages

app_name = "group_changes"

urlpatterns = [
    path("clusters/<slug:slug>/delete-groups/", pages.delete_several, name="delete_several"),
    path("clusters/<slug:slug>/groups/<str:group>/reset-offsets/", pages.reset, name="reset"),
    path("clusters/<slug:slug>/groups/<str:group>/delete/", pages.delete, name="delete"),
    path("clusters/<slug:slug>/groups/<str:group>/delete-offsets/", pages.delete_offsets, name="delete_offsets"),
]
