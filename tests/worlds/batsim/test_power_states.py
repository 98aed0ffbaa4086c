"""Power states of hosts: what is said, in which order, and when a host is where it should be."""

from bridge.wire.events import SetPowerState
from bridge.wire.hosts import Hosts, parse, text_of
from bridge.worlds.batsim.power_states import HostStates, Power, PowerPlan

#: Two computing states, three levels of power, and one that sleeps (3).
WATTS = (60.0, 100.0, 215.0, 5.0)


def state_changes(states: HostStates, now: int = 0) -> list[tuple[str, int]]:
    made = states.changes(now)
    assert all(type(one) is SetPowerState and one.time == now for one in made)
    return [(text_of(one.hosts), one.pstate) for one in made]


def hosts(text: str) -> Hosts:
    return parse(text)


def test_computing_states_change_at_once() -> None:
    states = HostStates(6, 0, -1, WATTS)
    assert state_changes(states) == [] and states.ready(hosts("0-5"))
    states.set_target(hosts("1-2 5"), 1)
    assert not states.ready(hosts("0-1")) and states.ready(hosts("0 3-4"))
    assert state_changes(states) == [("1-2 5", 1)]
    assert states.ready(hosts("0-5")) and state_changes(states) == []
    states.on_reached(hosts("1-2 5"), 1)  # the word of it comes later and means nothing
    assert state_changes(states) == []


def test_what_falls_is_said_before_what_rises() -> None:
    states = HostStates(6, 0, -1, WATTS)
    states.set_target(hosts("0-1"), 2)
    states.set_target(hosts("2"), 1)
    assert state_changes(states) == [("2", 1), ("0-1", 2)]
    states.set_target(hosts("0-1"), 0)
    states.set_target(hosts("1"), 1)  # falls to another state, given to the next job at once
    states.set_target(hosts("2-3"), 2)
    assert state_changes(states, 7) == [("0", 0), ("1", 1), ("2-3", 2)]


def test_sleeping_takes_time() -> None:
    states = HostStates(4, 0, 3, WATTS)
    states.set_target(hosts("0-2"), 3)
    assert state_changes(states) == [("0-2", 3)] and not states.ready(hosts("0"))
    states.set_target(hosts("1"), 1)  # wanted while it goes to sleep: nothing can be said yet
    assert state_changes(states) == []
    states.on_reached(hosts("0-2"), 3)
    assert state_changes(states, 5) == [("1", 1)]
    states.set_target(hosts("2"), 1)
    states.set_target(hosts("3"), 1)
    assert state_changes(states, 6) == [("3", 1), ("2", 1)]  # one that is awake and a sleeper are told apart
    assert states.ready(hosts("3")) and not states.ready(hosts("2-3"))
    states.on_reached(hosts("1"), 1)
    assert states.ready(hosts("1")) and not states.ready(hosts("1-2"))
    states.on_reached(hosts("2"), 0)  # not where it is going
    assert not states.ready(hosts("2"))
    states.on_reached(hosts("2"), 1)
    assert states.ready(hosts("1-3"))


def test_hosts_that_are_gone_are_left_alone() -> None:
    states = HostStates(2, 0, -1, WATTS)
    states.set_unavailable(hosts("1"), True)
    states.set_target(hosts("0-1"), 1)
    assert state_changes(states) == [("0", 1)]
    states.set_unavailable(hosts("1"), False)
    assert state_changes(states) == [("1", 1)]


def test_idle_hosts_are_due_once() -> None:
    power = Power(PowerPlan(WATTS, sleeping=3, idle_limit=10), 4)
    assert power.next_sleep_time() == 10 and power.select_hosts_to_sleep(9) == ()
    power.on_start(hosts("0-1"), 0, 0)
    assert power.select_hosts_to_sleep(10) == hosts("2-3") and power.select_hosts_to_sleep(11) == ()
    assert power.next_sleep_time() is None
    power.release(hosts("1"), 12)
    power.release(hosts("0"), 15)
    assert (
        power.next_sleep_time() == 22
        and power.select_hosts_to_sleep(24) == hosts("1")
        and power.next_sleep_time() == 25
    )
