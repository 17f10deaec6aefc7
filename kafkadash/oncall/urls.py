from django.urls import path

from kafkadash.oncall.views.board import board
from kafkadash.oncall.views.drill import drill
from kafkadash.oncall.views.findings import acknowledge, finding, release
from kafkadash.oncall.views.overview import overview
from kafkadash.oncall.views.runbooks import runbook, runbooks
from kafkadash.oncall.views.switcher import switcher

app_name = "oncall"

urlpatterns = [
    path("", board, name="board"),
    path("clusters/", switcher, name="switcher"),
    path("clusters/<slug:slug>/", overview, name="overview"),
    path("clusters/<slug:slug>/drill/", drill, name="drill"),
    path("clusters/<slug:slug>/findings/<slug:finding_id>/", finding, name="finding"),
    path("clusters/<slug:slug>/findings/<slug:finding_id>/acknowledge/", acknowledge, name="acknowledge"),
    path("clusters/<slug:slug>/findings/<slug:finding_id>/release/", release, name="release"),
    path("runbooks/", runbooks, name="runbooks"),
    path("runbooks/<slug:kind>/", runbook, name="runbook"),
]
