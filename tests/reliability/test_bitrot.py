"""A short form of the campaign of damages: tests/reliability/bitrot.py has the long one."""

from pathlib import Path

from tests.reliability.bitrot import DAMAGES, Campaign


def test_damage_is_reported_or_harmless(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, seed=7)
    campaign.run(len(campaign.kinds) * len(DAMAGES) * 2)
    assert not campaign.failures, "\n".join(campaign.failures)
    assert all(counts["reported"] for counts in campaign.counts.values())
