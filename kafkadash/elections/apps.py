from django.apps import AppConfig


class ElectionsConfig(AppConfig):
    name = "kafkadash.elections"
    label = "elections"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.elections import kind, unclean
        from kafkadash.elections.messages import ELECTION_ERROR_MESSAGES, ELECTION_MESSAGES, ELECTION_TITLES

        kind.make_known()
        unclean.make_known()
        register_messages(ELECTION_ERROR_MESSAGES)
        register_messages(ELECTION_MESSAGES)
        register_messages(ELECTION_TITLES)
