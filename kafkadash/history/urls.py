from django.urls import path

from kafkadash.history.charts import broker_history, cluster_history, group_history, quorum_history, topic_history
from kafkadash.history.pipeline_page import pipeline

app_name = "history"

urlpatterns = [
    path("pipeline/", pipeline, name="pipeline"),
    path("clusters/<slug:slug>/history/", cluster_history, name="cluster_history"),
    path("clusters/<slug:slug>/quorum/history/", quorum_history, name="quorum_history"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/history/", broker_history, name="broker_history"),
    path("clusters/<slug:slug>/topics/<str:topic>/history/", topic_history, name="topic_history"),
    path("clusters/<slug:slug>/groups/<str:group>/history/", group_history, name="group_history"),
]
