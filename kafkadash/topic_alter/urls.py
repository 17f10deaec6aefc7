from django.urls import path

from kafkadash.topic_alter import pages

app_name = "topic_alter"

urlpatterns = [path("clusters/<slug:slug>/alter-topics/", pages.alter, name="alter")]
