from django.urls import path

from kafkadash.configs import bulk_pages, pages

app_name = "configs"

urlpatterns = [
    path("clusters/<slug:slug>/topics/<str:topic>/configs/", pages.topic, name="topic"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/configs/", pages.broker, name="broker"),
    path("clusters/<slug:slug>/default-configs/", pages.default, name="default"),
    path("clusters/<slug:slug>/topic-configs/", bulk_pages.topics, name="topics"),
]
