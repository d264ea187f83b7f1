"""The example session of PVP, Appendix A, as a list of messages."""

import json
from pathlib import Path
from typing import Any

APPENDIX_FILE = Path(__file__).parents[1] / "data" / "pvp" / "appendix-a.json"
APPENDIX_MESSAGES: list[dict[str, Any]] = json.loads(APPENDIX_FILE.read_text("utf-8"))
APPENDIX_SESSION_ID = "ses_01HX7K9P4QZCVD3N8MYW6R5T2B"
