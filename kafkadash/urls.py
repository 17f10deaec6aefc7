"""All URLs. Each view says who may call it (``clusters.access``); for allauth's views it is said here."""

from __future__ import annotations

from allauth.account import views as account
from django.urls import URLPattern, URLResolver, include, path

from kafkadash.accounts import sessions as session_views
from kafkadash.accounts.passwords import change_password
from kafkadash.clusters.access import public, signed_in

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("kafkadash.findings.urls")),
    path("", include("kafkadash.timeline.urls")),
    path("", include("kafkadash.maintenance.urls")),
    path("", include("kafkadash.monitoring.urls")),
    path("", include("kafkadash.history.urls")),
    path("", include("kafkadash.changes.urls")),
    path("", include("kafkadash.topic_rules.urls")),
    path("", include("kafkadash.planning.urls")),
    path("", include("kafkadash.execution.urls")),
    path("", include("kafkadash.verify.urls")),
    path("", include("kafkadash.short_runs.urls")),
    path("", include("kafkadash.configs.urls")),
    path("", include("kafkadash.elections.urls")),
    path("", include("kafkadash.topics.urls")),
    path("", include("kafkadash.topic_alter.urls")),
    path("", include("kafkadash.group_changes.urls")),
    path("", include("kafkadash.broker_life.urls")),
    path("", include("kafkadash.throttle_removal.urls")),
    path("", include("kafkadash.move_cancels.urls")),
    path("", include("kafkadash.clusters.urls")),
    path("", include("kafkadash.notifications.urls")),
    path("", include("kafkadash.jobs.urls")),
    path("", include("kafkadash.ops.urls")),
    path("", include("kafkadash.metrics.urls")),
    path("login/", public(account.login), name="account_login"),
    path("logout/", public(account.logout), name="account_logout"),
    path("account/inactive/", public(account.account_inactive), name="account_inactive"),
    path("account/password/", signed_in(change_password), name="account_change_password"),
    path("account/sessions/", signed_in(session_views.sessions), name="account_sessions"),
    path("account/sessions/end-others/", signed_in(session_views.end_others), name="account_end_others"),
    path("account/sessions/<int:number>/end/", signed_in(session_views.end_session), name="account_end_session"),
]

handler400 = "kafkadash.accounts.error_pages.bad_request"
handler403 = "kafkadash.accounts.error_pages.permission_denied"
handler404 = "kafkadash.accounts.error_pages.page_not_found"
handler500 = "kafkadash.accounts.error_pages.server_error"
