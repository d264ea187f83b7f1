"""What a host was woken for.

The server wakes a host with a prompt that quotes what others wrote. That is on the log already: in
the session, or in a thread that not every member of the session may read. So it is not recorded
again as a prompt, and the turn answers what the host was woken for.
"""

from accord.core.attention.waking.prompt import woken_thread
from accord.daemon.agent_link import AgentLink

PROMPT, ANSWER = "prompt.submit", "response.start"


def cause_of_wake(link: AgentLink, wake_prompt: str) -> str:
    """The newest prompt to the agent that it has not answered; empty if it was woken otherwise.

    Raises ClientError.
    """
    connection = link.connection
    if woken_thread(wake_prompt) != (connection.fork or connection.session):
        return ""
    messages = link.newest_messages()
    answered = {each.payload.prompt_ref for each in messages if each.type == ANSWER}
    prompts = (
        each.id
        for each in reversed(messages)
        if each.type == PROMPT
        and each.payload.target_agent == connection.agent
        and each.sender != connection.agent
        and (each.fork or "") == connection.fork
    )
    newest = next(prompts, "")
    return "" if newest in answered else newest
