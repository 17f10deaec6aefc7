from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "kafkadash.accounts"
    label = "accounts"
