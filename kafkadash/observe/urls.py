from django.urls import path

from kafkadash.observe.views.allowed_lag import allowed_lag
from kafkadash.observe.views.brokers import broker, brokers
from kafkadash.observe.views.groups import group, groups
from kafkadash.observe.views.history import broker_history, group_history, quorum_history, topic_history
from kafkadash.observe.views.pipeline import pipeline
from kafkadash.observe.views.quorum import quorum, quorum_lag
from kafkadash.observe.views.racks import racks
from kafkadash.observe.views.reassignments import reassignment, reassignments
from kafkadash.observe.views.throttles import throttles
from kafkadash.observe.views.topics import topic, topics

app_name = "observe"

urlpatterns = [
    path("pipeline/", pipeline, name="pipeline"),
    path("clusters/<slug:slug>/quorum/", quorum, name="quorum"),
    path("clusters/<slug:slug>/quorum/lag/", quorum_lag, name="quorum_lag"),
    path("clusters/<slug:slug>/quorum/history/", quorum_history, name="quorum_history"),
    path("clusters/<slug:slug>/brokers/", brokers, name="brokers"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/", broker, name="broker"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/history/", broker_history, name="broker_history"),
    path("clusters/<slug:slug>/topics/", topics, name="topics"),
    path("clusters/<slug:slug>/topics/<str:topic>/", topic, name="topic"),
    path("clusters/<slug:slug>/topics/<str:topic>/history/", topic_history, name="topic_history"),
    path("clusters/<slug:slug>/groups/", groups, name="groups"),
    path("clusters/<slug:slug>/groups/<str:group>/", group, name="group"),
    path("clusters/<slug:slug>/groups/<str:group>/history/", group_history, name="group_history"),
    path("clusters/<slug:slug>/racks/", racks, name="racks"),
    path("clusters/<slug:slug>/throttles/", throttles, name="throttles"),
    path("settings/clusters/<slug:slug>/lag/", allowed_lag, name="allowed_lag"),
    path("clusters/<slug:slug>/reassignments/", reassignments, name="reassignments"),
    path("clusters/<slug:slug>/reassignments/<slug:public_id>/", reassignment, name="reassignment"),
]
