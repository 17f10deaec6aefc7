from django.urls import path

from kafkadash.elections import pages

app_name = "elections"

urlpatterns = [
    path("clusters/<slug:slug>/elections/new/", pages.propose, name="propose"),
    path("clusters/<slug:slug>/elections/choose/", pages.choose, name="choose"),
    path("clusters/<slug:slug>/elections/unclean/", pages.propose_unclean, name="unclean"),
]
