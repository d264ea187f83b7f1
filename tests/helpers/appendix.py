"""The example session of PVP, Appendix A, as printed."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "pvp" / "appendix-a.json"
PRINTED: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
SESSION = "ses_01HX7K9P4QZCVD3N8MYW6R5T2B"
