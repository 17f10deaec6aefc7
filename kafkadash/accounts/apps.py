from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "kafkadash.accounts"
    label = "accounts"

    def ready(self) -> None:
        from django.utils.translation import ngettext

        from kafkadash.accounts.error_pages import one_line_per_request
        from kafkadash.accounts.messages import ACCOUNT_MESSAGES, REQUEST_MESSAGES
        from kafkadash.accounts.sessions import connect
        from kafkadash.core.messages import register_messages, set_plural_choice

        one_line_per_request()
        connect()
        set_plural_choice(ngettext)
        register_messages(ACCOUNT_MESSAGES)
        register_messages(REQUEST_MESSAGES)
