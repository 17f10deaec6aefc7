from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "kafkadash.accounts"
    label = "accounts"

    def ready(self) -> None:
        from kafkadash.accounts.database_away import one_line_per_request
        from kafkadash.accounts.sessions import connect

        one_line_per_request()
        connect()
