from django.urls import path

from kafkadash.topics import pages

app_name = "topics"

urlpatterns = [
    path("clusters/<slug:slug>/create-topics/", pages.create, name="create"),
    path("clusters/<slug:slug>/canary/topic/", pages.propose_canary, name="canary"),
    path("clusters/<slug:slug>/delete-topics/", pages.delete_several, name="delete_several"),
    path("clusters/<slug:slug>/topics/<str:topic>/delete/", pages.delete, name="delete"),
    path("clusters/<slug:slug>/topics/<str:topic>/add-partitions/", pages.grow, name="grow"),
]
