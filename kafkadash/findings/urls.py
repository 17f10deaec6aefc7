from django.urls import path

from kafkadash.findings.board import acknowledge, board, finding, overview, release, switcher
from kafkadash.findings.product import product_finding
from kafkadash.findings.restart_page import restart, restart_order
from kafkadash.findings.runbooks import runbook, runbooks
from kafkadash.findings.simulation_page import drill
from kafkadash.findings.wall import wall

app_name = "findings"

urlpatterns = [
    path("", board, name="board"),
    path("wall", wall, name="wall"),
    path("clusters/", switcher, name="switcher"),
    path("clusters/<slug:slug>/", overview, name="overview"),
    path("clusters/<slug:slug>/drill/", drill, name="drill"),
    path("clusters/<slug:slug>/restart/", restart_order, name="restart_order"),
    path("clusters/<slug:slug>/brokers/<int:broker_id>/restart/", restart, name="restart"),
    path("clusters/<slug:slug>/findings/<slug:finding_id>/", finding, name="finding"),
    path("clusters/<slug:slug>/findings/<slug:finding_id>/acknowledge/", acknowledge, name="acknowledge"),
    path("clusters/<slug:slug>/findings/<slug:finding_id>/release/", release, name="release"),
    path("findings/<slug:finding_id>/", product_finding, name="product_finding"),
    path("runbooks/", runbooks, name="runbooks"),
    path("runbooks/<slug:kind>/", runbook, name="runbook"),
]
