from django.urls import path

from kafkadash.topic_rules import pages

app_name = "topic_rules"

urlpatterns = [path("settings/clusters/<slug:slug>/topic-rules/", pages.topic_rules, name="rules")]
