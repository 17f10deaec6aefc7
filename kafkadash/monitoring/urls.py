from django.urls import path

from kafkadash.monitoring.brokers import broker, brokers
from kafkadash.monitoring.canary.pages import canary, switch_canary
from kafkadash.monitoring.drift import drift
from kafkadash.monitoring.groups.allowed_lag import allowed_lag
from kafkadash.monitoring.groups.pages import group, groups
from kafkadash.monitoring.quorum.pages import quorum, quorum_lag
from kafkadash.monitoring.racks import racks
from kafkadash.monitoring.reassignments.pages import reassignment, reassignments
from kafkadash.monitoring.throttles import throttles
from kafkadash.monitoring.topics import topic, topics
from kafkadash.monitoring.traffic.pages import trends
from kafkadash.monitoring.transactions.pages import transactions

app_name = "monitoring"

urlpatterns = [
    path("clusters/<slug:slug>/quorum/", quorum, name="quorum"),
    path("clusters/<slug:slug>/quorum/lag/", quorum_lag, name="quorum_lag"),
    path("clusters/<slug:slug>/brokers/", brokers, name="brokers"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/", broker, name="broker"),
    path("clusters/<slug:slug>/drift/", drift, name="drift"),
    path("clusters/<slug:slug>/topics/", topics, name="topics"),
    path("clusters/<slug:slug>/topics/<str:topic>/", topic, name="topic"),
    path("clusters/<slug:slug>/groups/", groups, name="groups"),
    path("clusters/<slug:slug>/groups/<str:group>/", group, name="group"),
    path("clusters/<slug:slug>/trends/", trends, name="trends"),
    path("clusters/<slug:slug>/transactions/", transactions, name="transactions"),
    path("clusters/<slug:slug>/racks/", racks, name="racks"),
    path("clusters/<slug:slug>/canary/", canary, name="canary"),
    path("clusters/<slug:slug>/canary/switch/", switch_canary, name="switch_canary"),
    path("clusters/<slug:slug>/throttles/", throttles, name="throttles"),
    path("settings/clusters/<slug:slug>/lag/", allowed_lag, name="allowed_lag"),
    path("clusters/<slug:slug>/reassignments/", reassignments, name="reassignments"),
    path("clusters/<slug:slug>/reassignments/<slug:public_id>/", reassignment, name="reassignment"),
]
