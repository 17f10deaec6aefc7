from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "kafkadash.clusters"
    label = "clusters"
