from django.urls import path

from kafkadash.broker_life import pages

app_name = "broker_life"

urlpatterns = [
    path("clusters/<slug:slug>/brokers/<int:broker_id>/cordon/", pages.cordon, name="cordon"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/uncordon/", pages.uncordon, name="uncordon"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/unregister/", pages.unregister, name="unregister"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/decommission/", pages.decommission, name="decommission"),
]
