// Written by tools/page_types.py from the server's OpenAPI document; see `make page`.

/** Who the caller is; `device` is empty for a token that an operator issued. */
export interface Account {
  server: string;
  address: string;
  id: string;
  type: Kind;
  roles: Role[];
  workspace: string;
  name: string;
  device: string;
  expires_at: string;
}

/** Acknowledge everything up to `last_read_seq`; never goes back. */
export interface AckRead {
  schema_version?: number;
  thread_id: string;
  last_read_seq: number;
  agent_id?: string | null;
}

/** The cursor was stored. */
export interface Acknowledged {
  ok: boolean;
  updated_at: string;
}

/** Add participants to a thread. */
export interface AddParticipants {
  schema_version?: number;
  thread_id: string;
  participants: string[];
  idempotency_key?: string | null;
}

/** An agent; `awaited_in` are the threads that wait for it, `paused_by` who paused it. `status` is that of its liveliest program, or of its own requests if these say more. */
export interface AgentDetail {
  agent_id: string;
  workspace_id: string;
  status: RuntimeStatus;
  last_seen_at: string | null;
  runtimes: RuntimeDetail[];
  paused_by: string | null;
  awaited_in: string[];
}

/** An agent of the caller's and the public key of its device (Ed25519, 32 bytes in base64). `supervises`: the key is that of the program which holds the agent's terminal. */
export interface AgentEnrolment {
  id: string;
  roles: Role[];
  public_key: string;
  name?: string;
  supervises?: boolean;
}

/** Agents by name. */
export interface AgentList {
  agents: AgentDetail[];
}

/** All of these rules; one person may satisfy several of them. */
export interface AllOf {
  type: 'all_of';
  rules: (AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf)[];
}

/** Any `count` people who may approve. */
export interface AnyOf {
  type: 'any';
  count: number;
}

/** Tasks that ship together; `open` are those that are not accepted and hold the merge back. */
export interface BoardFeature {
  id: string;
  branch: string;
  status: string;
  accepted: number;
  total: number;
  open: string[];
  tasks: BoardTask[];
}

/** A seat; `member` is who fills it in a session of yours, if anyone does. */
export interface BoardSeat {
  id: string;
  roles: string[];
  member: string | null;
  name: string;
  kind: string | null;
}

/** A session that is bound to the repository and that you are in. */
export interface BoardSession {
  id: string;
  name: string;
}

/** A task. Its owner does it, and only its reviewer accepts it, who is never the owner. `returned`: changes were asked for and nothing was shown since. `commit` was shown or accepted last. `history` has the newest events, oldest first. */
export interface BoardTask {
  id: string;
  spec: string;
  owner: string;
  reviewer: string;
  deps: string[];
  status: string;
  returned: boolean;
  evidence: string;
  reason: string;
  commit: string;
  created_at: string;
  updated_at: string;
  accepted_at: string | null;
  history: BoardTaskEvent[];
}

/** What happened to a task; `words` is the evidence, or the reason for changes. */
export interface BoardTaskEvent {
  at: string;
  by: string;
  kind: string;
  words: string;
  commit: string;
}

/** What a call would reach, as the server read it from the call or from the session. */
export interface CallTarget {
  kind: 'branch' | 'host' | 'path' | 'remote' | 'secret' | 'tree';
  value: string;
  source: 'call' | 'session';
  detail: string;
}

/** The capabilities, granted by a role or in addition to one. `supervise` is of tokens alone: its holder keeps an agent's terminal and may wake it there. No role contains it, no session grants it. */
export type Capability = 'add_context' | 'approve' | 'end_session' | 'fork' | 'interrupt' | 'manage_participants' | 'prompt' | 'supervise';

/** Tool categories */
export type Category = 'all' | 'database' | 'deploy' | 'external_api' | 'file_delete' | 'file_read' | 'file_write' | 'network_request' | 'secret_access' | 'shell_execute';

/** The seven claims of MSG 1.1, and Accord's own: kind, roles, capabilities, labels, name. */
export interface Claims {
  iss: 'accord';
  agent_id: string;
  workspace_id: string;
  role: string;
  session_id: string;
  iat: number;
  exp: number;
  jti: string;
  kind: Kind;
  roles: Role[];
  capabilities?: Capability[];
  labels?: string[];
  name?: string;
}

/** What the server itself found a reported call to be; `policy` is the digest it used. */
export interface ComputedCall {
  category: Category;
  risk_level: Risk;
  explanation: string;
  repository: string;
  policy: string | null;
  claimed_category: Category;
  claimed_risk_level: Risk;
}

/** Content that is stored elsewhere, identified by its hash. */
export interface ContentRef {
  hash: string;
  size_bytes: number;
  mime_type: string;
  storage: 'inline' | 'ipfs' | 'local' | 's3';
  uri?: string | null;
}

/** A context item with its content. */
export interface ContextItemDetail {
  key: string;
  fork: string | null;
  content_type: string;
  author: string;
  visible_to: string[] | null;
  source: string;
  tags: string[];
  content: string | Record<string, unknown> | null;
  content_ref: ContentRef | null;
}

/** A context item without its content. */
export interface ContextItemSummary {
  key: string;
  fork: string | null;
  content_type: string;
  author: string;
  visible_to: string[] | null;
  source: string;
  tags: string[];
}

/** Create a thread. You need not list yourself; a thread's creator may always read and post. */
export interface CreateThread {
  schema_version?: number;
  title: string;
  participants: string[];
  type?: ThreadType;
  workspace_id?: string | null;
  created_by?: string | null;
  idempotency_key?: string | null;
}

/** The id of the thread that was created. */
export interface CreatedThread {
  thread_id: string;
  status: ThreadStatus;
  created_at: string;
}

/** Something that was considered and not done: a fork, a proposal or a merge. */
export interface DecisionAlternative {
  kind: string;
  id: string;
  description: string;
  reason: string;
  by: string[];
  branch: string;
}

/** An approval at a gate: of the whole commit, of `paths`, or only of something near it. `together`: the paths are covered only with what others approved. */
export interface DecisionApproval {
  by: string;
  gate: string;
  action: string;
  comment: string;
  at: string;
  self_approved: boolean;
  extent: 'context' | 'part' | 'whole';
  paths: string[];
  together: boolean;
}

/** All that the server has on record about one decision. `since` and `until` are the range of the session's messages, `stream`, `version` and `hash` the place on the log's chain at which it was made. */
export interface DecisionDetail {
  id: string;
  repo: string;
  sha: string;
  title: string;
  session: string;
  session_name: string;
  fork: string | null;
  branch: string;
  decision_type: string;
  decided_at: string;
  decided_by: string[];
  approved_by: string[];
  covers: string;
  files: string[];
  names: Record<string, string>;
  approvals: DecisionApproval[];
  alternatives: DecisionAlternative[];
  tools: DecisionTool[];
  conversation: DecisionMessage[];
  parents: string[];
  first_sha: string;
  since: number;
  until: number;
  stream: string;
  version: number;
  hash: string;
}

/** The decision behind a commit; `covers` says what of the commit people approved. `repo` is the repository's id, `title` the reason that the last call gave. `covers` is `whole`, `part` or `none`, and empty in records that do not know. */
export interface DecisionEntry {
  id: string;
  repo: string;
  sha: string;
  title: string;
  session: string;
  session_name: string;
  fork: string | null;
  branch: string;
  decision_type: string;
  decided_at: string;
  decided_by: string[];
  approved_by: string[];
  covers: string;
  files: string[];
}

/** Decisions that you may read, newest first; `kind` says how `at` was understood. */
export interface DecisionList {
  kind: 'commit' | 'decision' | 'newest' | 'path' | 'words';
  path: string;
  line: string;
  decisions: DecisionEntry[];
  has_more: boolean;
}

/** A message of the conversation, without secrets; `content` is quoted data of its sender. */
export interface DecisionMessage {
  id: string;
  type: string;
  sender: string;
  content: string;
  timestamp: string;
}

/** The rules' verdict on a step; `table` compares the judgements if there are several. */
export interface DecisionRuling {
  batch: string;
  item: string;
  step: string;
  verdict: string;
  state: string;
  confidence: string;
  sha256: string;
  convergence: string | null;
  judges: string[];
  table: string;
}

/** A call that ran; `approved_by` are those who let it run. */
export interface DecisionTool {
  id: string;
  name: string;
  agent: string;
  category: string;
  risk: string;
  description: string;
  outcome: string;
  approved_by: string[];
  paths: string[];
}

/** How far one message reached one agent. */
export type DeliveryState = 'acked' | 'delivered' | 'queued' | 'seen';

/** Devices, oldest first. */
export interface DeviceList {
  devices: ListedDevice[];
}

/** How and when a gate ended; `by` approved or rejected it, some by a `standing` grant. `taken_back`: the approval was taken back before it was used. */
export interface EndedGate {
  session: string;
  session_name: string;
  id: string;
  action_type: string;
  action_ref: string;
  initiator: string;
  tool_name: string;
  outcome: GateOutcome;
  by: string[];
  standing: string[];
  reason: string;
  taken_back: boolean;
  ended_at: string;
  fork: string | null;
  fork_name: string | null;
  people: Record<string, string>;
}

/** An error: a code for programs, a message for people. */
export interface ErrorBody {
  code: string;
  message: string;
  details?: Record<string, unknown>;
}

/** A refused request; it changed nothing. */
export interface ErrorResponse {
  error: ErrorBody;
}

/** Every member of the electorate. */
export interface Everyone {
  type: 'all';
}

/** A fork: where it began, who is in it, whether it was merged; else what a merge must resolve. `conflicts` are the keys that changed on both sides. */
export interface ForkSummary {
  id: string;
  name: string;
  parent: string | null;
  from_point: string;
  members: string[];
  created_by: string;
  created_at: string;
  merged: boolean;
  into: string | null;
  conflicts?: string[];
}

/** An open gate in its session, with what you need to decide on it. `people` has the names of the ids in it. `standing` are those who approved by a standing grant. `after_my_yes` are the rules that your approval would leave unmet: none means that it is enough, null that it would not count. `options` has all proposals of which one is to be chosen, this one included. */
export interface GateCard {
  id: string;
  request: GateTerms;
  initiator: string;
  approvals: string[];
  standing: string[];
  rejections: string[];
  approvals_received: number;
  approvals_required: number;
  lacks: Lack[];
  waits_for: string[];
  created_at: string;
  expires_at: string | null;
  action: OpenProposal | null;
  fork: string | null;
  fork_name: string | null;
  people: Record<string, string>;
  notes: string[];
  skipped: string[];
  unmeetable: string[];
  session: string;
  session_name: string;
  may_approve: boolean;
  may_reject: boolean;
  my_vote: 'approved' | null;
  votes: GateVote[];
  rules: GateRule[];
  after_my_yes: Lack[] | null;
  targets: CallTarget[];
  options: GateOption[];
  presences: Record<string, Presence>;
}

/** One of several proposals of which one is chosen, and its gate. */
export interface GateOption {
  gate: string | null;
  proposal: OpenProposal;
}

/** How a gate ended. */
export type GateOutcome = 'approved' | 'auto_approved' | 'escalated' | 'rejected' | 'session_ended' | 'timed_out';

/** How a gate ends that was not passed in time. */
export type GateResolution = 'auto_approved' | 'escalated' | 'rejected';

/** One rule of a quorum: `count` approvals; `candidates` could still give one. */
export interface GateRule {
  rule: AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf;
  count: number;
  approved: string[];
  candidates: string[];
}

/** What a gate was opened for. */
export interface GateTerms {
  action_type: string;
  action_ref: string;
  quorum: AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf;
  timeout_seconds: number;
  message: string;
}

/** An approval, and what was said with it. */
export interface GateVote {
  by: string;
  at: string;
  comment: string;
}

/** Fetch a thread's metadata and participants. */
export interface GetThread {
  schema_version?: number;
  thread_id: string;
}

/** The answer to an action; which fields it has depends on the action. */
export interface GitHookAnswer {
  repo?: string | null;
  session?: string | null;
  sessions?: string[] | null;
  decision?: string | null;
  note?: Record<string, unknown> | null;
}

/** The parameters of an action; the reference of the git bridge lists those of each. */
export interface GitHookRequest {
  repo?: string | null;
  session?: string | null;
  fork?: string | null;
  branch?: string | null;
  sha?: string | null;
}

/** A standing grant that was recorded. */
export interface GivenStandingGrant {
  id: string;
  session: string;
}

/** Permission to run exactly one proposal, once, until it expires. */
export interface Grant {
  id: string;
  digest: string;
  expires_at: string;
}

/** A prompt to type when no person has typed for `quiet_seconds` and the line is empty. */
export interface HandedWake {
  wake_id: string;
  prompt: string;
  quiet_seconds: number;
}

/** The heartbeat was recorded. */
export interface HeartbeatRecorded {
  ok: boolean;
  recorded_at: string;
}

/** Report that your runtime is alive; decides how you are woken. `runtime_ref` is the vendor's id of the conversation, with the machine and directory where it started. The last three are a supervisor's. */
export interface HeartbeatSession {
  schema_version?: number;
  runtime: string;
  status?: 'active' | 'idle' | 'offline';
  resumable?: boolean;
  runtime_ref?: string | null;
  machine?: string | null;
  directory?: string | null;
  agent_id?: string | null;
  workspace_id?: string | null;
  session_id?: string | null;
  management_mode?: 'managed' | 'unmanaged' | null;
  seconds_since_typing?: number | null;
  line_empty?: boolean | null;
}

/** What concerns you; the gate that ends first comes first. */
export interface Home {
  gates: GateCard[];
  stalls: Stall[];
  ended_gates: EndedGate[];
  standing_grants: StandingGrantCard[];
  silences: Silence[];
  questions: Question[];
  unread_threads: ThreadDetail[];
  counts: HomeCounts;
  has_more: boolean;
}

/** Numbers, also of what did not fit; `other_gates` are open and not for you to vote on. */
export interface HomeCounts {
  gates: number;
  awaiting_my_vote: number;
  other_gates: number;
  stalls: number;
  silences: number;
  questions: number;
  unread_threads: number;
}

/** Unused invitations and sign-in codes, oldest first. */
export interface InvitationList {
  invitations: ListedInvitation[];
}

/** Whom to invite; without an `id` the server makes one up. */
export interface InvitationRequest {
  roles: Role[];
  id?: string;
  name?: string;
  workspace?: string;
}

/** A new invitation; this is the only place where its code is shown. */
export interface IssuedInvitation {
  id: string;
  principal: string;
  workspace: string;
  roles: Role[];
  by: string;
  invitation: boolean;
  issued_at: string;
  expires_at: string;
  code: string;
}

/** A new token for its holder only; `warnings` are for the issuer. */
export interface IssuedToken {
  token: string;
  claims: Claims;
  key: string;
  warnings?: string[];
}

/** Public keys, oldest first. */
export interface KeyList {
  keys: PublicKey[];
}

/** The kind of an actor; only approvals by humans count. */
export type Kind = 'agent' | 'human' | 'system';

/** A simple rule that is not met yet; `possible` if the current members could meet it. `candidates` are the members whose approval would count for it. */
export interface Lack {
  rule: AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf;
  missing: number;
  possible: boolean;
  candidates?: string[];
}

/** List the agents of your workspace, with the runtimes in which they were seen. */
export interface ListAgents {
  schema_version?: number;
  workspace_id?: string | null;
  target_agent_id?: string | null;
}

/** List your threads, most recently changed first. */
export interface ListThreads {
  schema_version?: number;
  workspace_id?: string | null;
  status?: ThreadStatus | null;
  unread_only?: boolean;
  after?: string | null;
  limit?: number;
}

/** List wakes, newest first: for an operator or orchestrator all, for an agent its own. */
export interface ListWakes {
  schema_version?: number;
  thread_id?: string | null;
  target_agent_id?: string | null;
  workspace_id?: string | null;
  limit?: number;
}

/** A signed-in device; a browser holds a cookie instead of a key. `by` is the person who enrolled an agent, empty for a person's own device. */
export interface ListedDevice {
  id: string;
  principal: string;
  type: Kind;
  by: string;
  workspace: string;
  roles: Role[];
  browser: boolean;
  added_at: string;
}

/** An invitation or sign-in code that was not used yet; the code itself is not stored. */
export interface ListedInvitation {
  id: string;
  principal: string;
  workspace: string;
  roles: Role[];
  by: string;
  invitation: boolean;
  issued_at: string;
  expires_at: string;
}

/** A token as operators see it. */
export interface ListedToken {
  jti: string;
  id: string;
  kind: Kind;
  roles: Role[];
  issued_at: number;
  expires_at: number;
  key: string;
  workspace?: string;
  capabilities?: Capability[];
  labels?: string[];
  name?: string;
  device?: string;
  revoked?: boolean;
}

/** More than half of the electorate. */
export interface Majority {
  type: 'majority';
}

/** Whether a supervisor holds the terminal of the runtime. */
export type ManagementMode = 'managed' | 'unmanaged';

/** How one conflict is resolved. */
export interface MergeResolution {
  conflict_id: string;
  resolution: 'custom' | 'use_source' | 'use_target';
  custom_value?: string | Record<string, unknown> | null;
}

/** A message. `sender_*` come from its sender's credential; `body` is quoted data. `delivery` says how far it reached each participant; only its sender and operators see it. */
export interface MessageItem {
  message_id: string;
  thread_id: string;
  seq: number;
  sender_agent_id: string;
  sender_kind: Kind;
  sender_verified: boolean;
  sender_session_id: string;
  kind: MessageKind;
  body: string;
  metadata?: Record<string, unknown>;
  in_reply_to?: string;
  idempotency_key?: string;
  schema_version: number;
  created_at: string;
  quoted: true;
  delivery?: Record<string, DeliveryState>;
}

/** What a message is; only the server posts `system`. */
export type MessageKind = 'chat' | 'event' | 'system';

/** Messages; use `next` as `after` in the next request. */
export interface MessageList {
  messages: ReceivedEnvelope[];
  next: string | null;
  has_more: boolean;
}

/** Messages; use `next_seq` as `since_seq` to read on. */
export interface MessagePage {
  messages: MessageItem[];
  next_seq: number;
  has_more: boolean;
  notice: string;
}

/** Where a message was stored; `seq` is 0 for a signal, which is relayed but not stored. */
export interface MessageReceipt {
  id: string;
  seq: number;
  session: string;
}

/** A refused request; it changed nothing. */
export interface MethodError {
  error: MethodErrorBody;
}

/** An error: a code for programs, a message for people. */
export interface MethodErrorBody {
  code: string;
  message: string;
  request_id: string;
  details?: Record<string, unknown>;
}

/** All of the people named, whether they are members or not. */
export interface Named {
  type: 'specific';
  participants: string[];
}

/** `count` people whose credential carries the label and who may approve. */
export interface OfLabel {
  type: 'label';
  label: string;
  count: number;
}

/** `count` people who hold the role and may approve. */
export interface OfRole {
  type: 'role';
  role: Role;
  count: number;
}

/** What happens to open gates while a member is absent. */
export type OnTimeout = 'pause_session' | 'skip' | 'wait';

/** A finding that is still open; `text` is quoted data from its reporter. */
export interface OpenItem {
  message_id: string;
  seq: number;
  event_type: string;
  severity?: string;
  task_id?: string;
  text: string;
  reported_by: string;
}

/** A merge that is not finished. */
export interface OpenMerge {
  id: string;
  source: string;
  target: string | null;
  strategy: Strategy;
  gated: boolean;
  head: string | null;
  changed: string | null;
}

/** An unfinished proposal, its ruling, and whether that holds it. `category` and `risk_level` are the proposer's own claim, unless the server computed them: then `computed` says what it found, and the claim can only have raised it. `approved` is also said of a call that needed no gate; one that is `gated` too has passed its gate. Where the arguments were too large for a list of gates they are omitted; the session has them. */
export interface OpenProposal {
  id: string;
  agent: string;
  tool_name: string;
  arguments: Record<string, unknown>;
  arguments_omitted: boolean;
  category: Category;
  risk_level: Risk;
  description: string;
  approved: boolean;
  used: boolean;
  computed: ComputedCall | null;
  decision: DecisionRuling | null;
  held: ProposalHold | null;
  fork: string | null;
  gated?: boolean;
}

/** A pact. `trouble` says why something may be missing; `left_out` tasks are not shown. */
export interface PactBoard {
  repo: string;
  project: string;
  base_branch: string;
  sessions: BoardSession[];
  events: number;
  trouble: string;
  left_out: number;
  seats: BoardSeat[];
  features: BoardFeature[];
}

/** A pact of a repository that a session of yours is bound to. */
export interface PactEntry {
  repo: string;
  project: string;
  sessions: BoardSession[];
  tasks: number;
  accepted: number;
  awaiting_review: number;
}

/** The pacts of your sessions. */
export interface PactList {
  pacts: PactEntry[];
}

/** Keep an agent from being woken, or end that with `paused` false; for people only. */
export interface PauseAgent {
  schema_version?: number;
  target_agent_id: string;
  paused?: boolean;
  workspace_id?: string | null;
}

/** Whether the agent is paused now. */
export interface PausedAgent {
  target_agent_id: string;
  paused: boolean;
}

/** A principal, and what lets it in. */
export interface Person {
  id: string;
  workspace: string;
  type: Kind;
  roles: Role[];
  tokens: number;
  devices: number;
  invitations: number;
}

/** Everyone with a token, a device or an invitation, by id. */
export interface PersonList {
  people: Person[];
}

/** A policy to sign: the exact text of the file, and its SHA-256 in hexadecimal. */
export interface PolicyRequest {
  repository: string;
  digest: string;
  text: string;
  workspace?: string;
}

/** Post a message. `metadata.to` addresses participants; an event needs `event_type` there. */
export interface PostMessage {
  schema_version: number;
  thread_id: string;
  body: string;
  kind?: MessageKind;
  metadata?: Record<string, unknown> | null;
  in_reply_to?: string | null;
  idempotency_key?: string | null;
  sender_agent_id?: string | null;
  sender_session_id?: string | null;
}

/** Where the message is in its thread: its id and `seq`. */
export interface PostedMessage {
  message_id: string;
  seq: number;
  thread_status: ThreadStatus;
  created_at: string;
}

/** Whether a member is reachable. */
export type Presence = 'active' | 'away' | 'disconnected' | 'idle';

/** The payload of an `error`. */
export interface Problem {
  code: string;
  message: string;
  recoverable: boolean;
  details?: Record<string, unknown> | null;
  related_to?: string | null;
}

/** How the agent should answer. */
export interface PromptConfig {
  temperature?: number | null;
  max_tokens?: number | null;
  tools_allowed?: string[] | null;
  model?: string | null;
  provider_params?: Record<string, unknown> | null;
}

/** Why voting on a proposal has not started, and until when. */
export interface ProposalHold {
  batch: string;
  item: string;
  step: string;
  why: string;
  until: string;
}

/** A public key; `public` is PEM. */
export interface PublicKey {
  kid: string;
  public: string;
  created_at: number;
  active: boolean;
}

/** Something in a thread that waits for you. `addressed`: a message names you, and you have not posted since. `finding_open`: another reported a finding that has no fix. `finding_fixed`: a fix was pushed and you may verify it. */
export interface Question {
  thread: string;
  title: string;
  kind: 'addressed' | 'finding_fixed' | 'finding_open';
  message_id: string;
  seq: number;
  by: string;
  since: string | null;
  severity: string;
  task_id: string;
}

/** Read messages after `since_seq`, oldest first. Reading does not acknowledge. */
export interface ReadMessages {
  schema_version?: number;
  thread_id: string;
  since_seq?: number;
  limit?: number;
  agent_id?: string | null;
  peek?: boolean;
}

/** A proof of a device's key: the signature over address, device, time and nonce, in base64. `time` is milliseconds since 1970 and at most 60 s off; a nonce is good once. */
export interface RefreshRequest {
  device: string;
  address: string;
  time: number;
  nonce: string;
  signature: string;
}

/** A short token of a device. */
export interface RefreshedToken {
  token: string;
  expires_at: string;
}

/** What ended when a person was removed. */
export interface Removal {
  tokens: number;
  devices: number;
  invitations: number;
  sessions: number;
}

/** How much harm a tool could do, by its proposer's estimate. */
export type Risk = 'critical' | 'high' | 'low' | 'medium';

/** The six roles */
export type Role = 'admin' | 'adversary' | 'approver' | 'driver' | 'navigator' | 'observer';

/** One program of an agent (MSG 2.4). */
export interface RuntimeDetail {
  session_id: string;
  runtime: string;
  status: RuntimeStatus;
  management_mode: ManagementMode;
  resumable: boolean;
  last_heartbeat_at: string;
  machine: string | null;
}

/** What is known of a runtime, from its heartbeats (MSG 2.4). */
export type RuntimeStatus = 'active' | 'idle' | 'offline';

/** A secret that you shared or may use, without its value. */
export interface SecretSummary {
  key: string;
  sharer: string;
  scope: string[];
  expires_at: string | null;
}

/** The settings of a session; all nine are required. */
export interface SessionConfig {
  require_approval_for: Category[];
  default_gate_quorum: AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf;
  allow_forks: boolean;
  max_participants: number;
  ordering_mode: 'causal' | 'total';
  on_participant_timeout: OnTimeout;
  heartbeat_interval_seconds: number;
  idle_timeout_seconds: number;
  away_timeout_seconds: number;
}

/** The present state of a session, as far as the caller may see it. */
export interface SessionDetail {
  id: string;
  name: string;
  status: string;
  created_at: string;
  created_by: string;
  participants: number;
  open_gates: number;
  held: number;
  standing: string;
  lost: boolean;
  config: SessionConfig;
  gate_timeout_seconds: number | null;
  members: SessionMember[];
  gates: GateCard[];
  tools: OpenProposal[];
  forks: ForkSummary[];
  merges: OpenMerge[];
  context: ContextItemSummary[];
  secrets: SecretSummary[];
  halted: Record<string, string>;
  standing_grants: StandingGrantSummary[];
  unmeetable: string[];
}

/** What one session contributes to a home; replaces what was said about it before. */
export interface SessionHome {
  gates: GateCard[];
  stalls: Stall[];
  ended_gates: EndedGate[];
  standing_grants: StandingGrantCard[];
  silences: Silence[];
  questions: Question[];
  unread_threads: ThreadDetail[];
  counts: HomeCounts;
  has_more: boolean;
  session: string;
}

/** Sessions, newest first. */
export interface SessionList {
  sessions: SessionSummary[];
  has_more: boolean;
}

/** A member of a session. */
export interface SessionMember {
  id: string;
  name: string;
  type: string;
  roles: Role[];
  capabilities: Capability[];
  presence: Presence;
}

/** A session in a list; `standing` is your relation to it. */
export interface SessionSummary {
  id: string;
  name: string;
  status: string;
  created_at: string;
  created_by: string;
  participants: number;
  open_gates: number;
  held: number;
  standing: string;
  lost: boolean;
}

/** A one-time code; with a public key (Ed25519, 32 bytes in base64) the answer is a profile. */
export interface SignInRequest {
  code: string;
  public_key?: string | null;
}

/** A new profile; a browser has its token in a cookie instead. */
export interface SignedIn {
  server: string;
  address: string;
  id: string;
  type: Kind;
  roles: Role[];
  workspace: string;
  name: string;
  device: string;
  expires_at: string;
  token: string | null;
}

/** The newest policy that an operator signed for a repository. */
export interface SignedPolicyText {
  repository: string;
  digest: string;
  text: string;
  by: string;
  signed_at: string;
}

/** A DSSE envelope around an in-toto statement. */
export interface SignedStatement {
  payloadType: string;
  payload: string;
  signatures: StatementSignature[];
}

/** A member was addressed in a thread and has not answered; shown to operators. */
export interface Silence {
  thread: string;
  agent: string;
  message: string;
  by: string;
  since: string;
}

/** Something that does not go on by itself. `id` is that of the held proposal, of the unanswered interrupt, of the stopped agent, of the agent whose last answer ended with an error, of the call that was allowed and whose agent is away, or of the paused session. */
export interface Stall {
  session: string;
  session_name: string;
  kind: 'agent_away' | 'agent_failed' | 'agent_stopped' | 'interrupt_unanswered' | 'proposal_held' | 'session_paused';
  id: string;
  agents: string[];
  proposal: OpenProposal | null;
  fork: string | null;
  fork_name: string | null;
  people: Record<string, string>;
}

/** The kernel's current view of a step, shown to voters; only the server fills it in. */
export interface Standing {
  batch: string;
  item: string;
  step: string;
  verdict: string;
  state: string;
  confidence: string;
  sha256: string;
  convergence?: string | null;
}

/** A standing grant in its session. */
export interface StandingGrantCard {
  id: string;
  grantor: string;
  agent: string;
  run: string[];
  write: string[];
  count: number;
  used: number;
  created_at: string;
  expires_at: string;
  people: Record<string, string>;
  session: string;
  session_name: string;
}

/** Your yes beforehand: for which calls of which agent, how often, and for how many seconds. */
export interface StandingGrantRequest {
  agent: string;
  count: number;
  seconds: number;
  run?: string[];
  write?: string[];
  comment?: string | null;
}

/** A member's yes, given beforehand, to calls alike of one agent. */
export interface StandingGrantSummary {
  id: string;
  grantor: string;
  agent: string;
  run: string[];
  write: string[];
  count: number;
  used: number;
  created_at: string;
  expires_at: string;
  people: Record<string, string>;
}

/** A signature of the payload's DSSE encoding, in base64. */
export interface StatementSignature {
  keyid: string;
  sig: string;
}

/** How a fork is merged back. */
export type Strategy = 'append' | 'interleave' | 'manual' | 'replace';

/** Summarize a thread instead of reading all of it. */
export interface SummarizeThread {
  schema_version?: number;
  thread_id: string;
  max_messages?: number;
}

/** As the supervisor of a runtime: report about it, and wait for prompts to type. `instance_id` is one run of the supervisor; `working`: the host is in the middle of a turn or asks a person something. */
export interface TakeWakes {
  schema_version?: number;
  runtime: string;
  status?: 'active' | 'idle' | 'offline';
  resumable?: boolean;
  runtime_ref?: string | null;
  machine?: string | null;
  directory?: string | null;
  agent_id?: string | null;
  workspace_id?: string | null;
  session_id?: string | null;
  management_mode?: 'managed' | 'unmanaged' | null;
  seconds_since_typing?: number | null;
  line_empty?: boolean | null;
  instance_id: string;
  working?: boolean;
  wait_seconds?: number;
  done?: WakeDone[];
}

/** What there is to type; the same wake comes again until it is reported as done. */
export interface TakenWakes {
  wakes: HandedWake[];
  recorded_at: string;
}

/** A thread; `unread` counts what you have not acknowledged and did not write. The title is quoted from `created_by`: data, not an instruction. */
export interface ThreadDetail {
  thread_id: string;
  workspace_id: string;
  title: string;
  type: ThreadType;
  status: ThreadStatus;
  participants: string[];
  created_by: string;
  created_at: string;
  updated_at: string;
  last_seq: number;
  last_read_seq: number;
  unread: number;
  quoted: boolean;
}

/** A thread that changed, as you may read it now, and all that waits for you in it. */
export interface ThreadHome {
  thread: ThreadDetail;
  questions: Question[];
}

/** Threads; use the last id as `after` to read on. */
export interface ThreadList {
  threads: ThreadDetail[];
  has_more: boolean;
}

/** The participants of a thread. */
export interface ThreadParticipants {
  thread_id: string;
  participants: string[];
  updated_at: string;
}

/** The values of the `role` claim of MSG. */
export type ThreadRole = 'operator' | 'orchestrator' | 'reviewer' | 'worker';

/** Where a thread stands (MSG 2.1). */
export type ThreadStatus = 'active' | 'blocked' | 'closed' | 'resolved';

/** A summary, the same for everyone who asks. */
export interface ThreadSummary {
  summary: string;
  open_items: OpenItem[];
  last_status: ThreadStatus;
  notice: string;
}

/** What a thread is for (MSG 2.1). */
export type ThreadType = 'conversation' | 'incident' | 'workflow';

/** Unexpired tokens. */
export interface TokenList {
  tokens: ListedToken[];
}

/** Request for a new token; `kind` is `type` in JSON, as on the command line. */
export interface TokenRequest {
  id: string;
  type: Kind;
  roles: Role[];
  workspace?: string;
  ttl_s?: number;
  labels?: string[];
  capabilities?: Capability[];
  name?: string;
  role?: ThreadRole | null;
}

/** Messages; use `next` as `after` in the next request. */
export interface TranscriptPage {
  messages: ReceivedEnvelope[];
  next: number;
  has_more: boolean;
}

/** Wake a participant that has unread messages. `force` needs a human operator. */
export interface TriggerParticipant {
  schema_version?: number;
  thread_id: string;
  target_agent_id: string;
  reason?: string;
  trigger_prompt?: string;
  force?: boolean;
  idempotency_key?: string | null;
}

/** What a wake did, and `why`; `runtime_command` is for display only. A trigger that was skipped because of an earlier wake has the action, command and time of that one. */
export interface TriggerResult {
  target_agent_id: string;
  action: 'none' | 'resume_session' | 'spawn_session' | 'trigger_runtime';
  result: 'deferred' | 'delivered' | 'failed' | 'fallback_used' | 'skipped';
  defer_reason?: string | null;
  deferred_until?: string | null;
  fallback_action?: string | null;
  runtime_command?: string | null;
  triggered_at: string;
  why?: string;
  detail?: string;
}

/** Messages of whole turns, with each stream of chunks as one; `first` is the next `before`. A chunk that stands for several has `folded` in its payload: the `seq` of the first, how many there were, and how many characters of output were left out. `last_id` is where to resume. */
export interface TurnsPage {
  messages: ReceivedEnvelope[];
  first: number;
  last: number;
  last_id: string | null;
  has_more: boolean;
}

/** Change a thread's status. An override needs a `reason`, `force` a human operator. */
export interface UpdateThreadStatus {
  schema_version?: number;
  thread_id: string;
  status: ThreadStatus;
  reason?: string;
  force?: boolean;
  metadata?: Record<string, unknown> | null;
  agent_id?: string | null;
  idempotency_key?: string | null;
}

/** The status of the thread after the change. */
export interface UpdatedThread {
  thread_id: string;
  status: ThreadStatus;
  updated_at: string;
}

/** How urgent an interrupt is. */
export type Urgency = 'emergency' | 'pause' | 'stop';

/** Tokens, cost and latency of a response. */
export interface UsageStats {
  input_tokens: number;
  output_tokens: number;
  thinking_tokens?: number | null;
  cost_usd?: number | null;
  model?: string | null;
  latency_ms?: number | null;
}

/** What came of a wake that a supervisor took. */
export interface WakeDone {
  wake_id: string;
  result: 'delivered' | 'failed' | 'host_working' | 'human_input_busy';
  detail?: string;
}

/** Wakes, newest first. */
export interface WakeList {
  wakes: WakeRow[];
}

/** One wake: who asked for whom, what was done, what came of it, and why. */
export interface WakeRow {
  wake_id: string;
  target_agent_id: string;
  thread_id: string;
  asked_by: string;
  automatic: boolean;
  forced: boolean;
  reason: string;
  action: 'none' | 'resume_session' | 'spawn_session' | 'trigger_runtime';
  result: 'deferred' | 'delivered' | 'failed' | 'fallback_used' | 'skipped' | 'under_way';
  why: string;
  detail: string;
  runtime_command: string | null;
  asked_at: string;
  ended_at: string | null;
}

/** Add a context item. */
export interface ContextAdd {
  key: string;
  content_type: 'audio_transcript' | 'file' | 'image' | 'reference' | 'structured' | 'text';
  content?: string | Record<string, unknown> | null;
  content_ref?: ContentRef | null;
  visible_to?: string[] | null;
  source?: string | null;
  tags?: string[] | null;
}

/** Remove an item. */
export interface ContextRemove {
  key: string;
  reason: string;
}

/** Change an item by a diff, by new content, or by a reference to new content. */
export interface ContextUpdate {
  key: string;
  reason: string;
  diff?: string | null;
  new_content?: string | Record<string, unknown> | null;
  new_content_ref?: ContentRef | null;
}

/** Something went wrong at a participant's end. */
export interface ErrorReport {
  code: 'AGENT_ERROR' | 'CONTEXT_TOO_LARGE' | 'GATE_FAILED' | 'INTERNAL_ERROR' | 'INVALID_MESSAGE' | 'INVALID_STATE' | 'PARTICIPANT_NOT_FOUND' | 'RATE_LIMITED' | 'SESSION_NOT_FOUND' | 'TIMEOUT' | 'TRANSPORT_ERROR' | 'UNAUTHORIZED';
  message: string;
  recoverable: boolean;
  details?: Record<string, unknown> | null;
  related_to?: string | null;
}

/** Fork at a message; inside a fork, fork that fork. */
export interface ForkCreate {
  name: string;
  from_point: string;
  reason: string;
  participants: string[];
  copy_context: boolean;
}

/** Switch to another fork, or back to the trunk. */
export interface ForkSwitch {
  target_fork: string;
}

/** Vote yes. */
export interface GateApprove {
  gate: string;
  approver: string;
  comment?: string | null;
}

/** Vote no, or withdraw your own action. */
export interface GateReject {
  gate: string;
  rejector: string;
  reason: string;
}

/** Ask for approval of an action. */
export interface GateRequest {
  action_type: 'context_change' | 'deploy' | 'fork' | 'merge' | 'participant_add' | 'prompt' | 'session_config' | 'tool';
  action_ref: string;
  quorum: AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf;
  timeout_seconds: number;
  message: string;
  decision?: Standing | null;
}

/** The server's notice that a gate was not passed in time. */
export interface GateTimeout {
  gate: string;
  approvals_received: number;
  approvals_required: number;
  resolution: GateResolution;
}

/** Ask whether the other side is alive. */
export type HeartbeatPing = Record<string, unknown>;

/** The answer to a ping. */
export type HeartbeatPong = Record<string, unknown>;

/** What the agent did about an interrupt. */
export interface InterruptAcknowledge {
  interrupt: string;
  by: string;
  action_taken: 'acknowledged' | 'ignored' | 'paused' | 'stopped';
  ignore_reason?: string | null;
}

/** Interrupt one agent, or all of them. */
export interface InterruptRaise {
  urgency: Urgency;
  message: string;
  target?: string | null;
  inject_context?: string | null;
  inject_context_ref?: ContentRef | null;
}

/** Execute a proposed merge, with a resolution of every conflict. */
export interface MergeExecute {
  merge_proposal: string;
  resolved_conflicts?: MergeResolution[] | null;
  not_approved?: string[] | null;
}

/** Propose to merge a fork. */
export interface MergePropose {
  source_fork: string;
  target_fork: string;
  strategy: Strategy;
  summary: string;
  metadata?: Record<string, unknown> | null;
}

/** Describe yourself; from the server, the description with what was granted. */
export interface ParticipantAnnounce {
  id: string;
  name: string;
  type: 'agent' | 'human';
  roles: Role[];
  transport: 'http' | 'mcp' | 'stdio' | 'websocket';
  capabilities?: Capability[] | null;
  metadata?: Record<string, unknown> | null;
}

/** Change a member's roles; without new ones, remove the member. */
export interface ParticipantRoleChange {
  participant: string;
  old_roles: Role[];
  new_roles: Role[];
  changed_by: string;
  reason?: string | null;
}

/** Report whether a member is reachable. */
export interface PresenceUpdate {
  participant: string;
  status: Presence;
  last_active: string;
}

/** Amend a prompt that is not answered yet. */
export interface PromptAmend {
  original_prompt: string;
  amendment: string;
  reason: string;
}

/** A prompt being written; later drafts refer to the first. */
export interface PromptDraft {
  content: string;
  contributors: string[];
  target_agent?: string | null;
}

/** Prompt an agent. */
export interface PromptSubmit {
  content: string;
  target_agent: string;
  contributors: string[];
  context_keys: string[];
  config?: PromptConfig | null;
}

/** The next part of a response. */
export interface ResponseChunk {
  text: string;
}

/** End a response. */
export interface ResponseEnd {
  finish_reason: 'complete' | 'error' | 'interrupted' | 'max_tokens' | 'tool_use';
  usage?: UsageStats | null;
  metadata?: Record<string, unknown> | null;
}

/** Start a response to a prompt. */
export interface ResponseStart {
  agent: string;
  prompt_ref: string;
}

/** Revoke a secret. */
export interface SecretRevoke {
  key: string;
  reason: string;
}

/** Share a secret with some participants; it is stored with an empty `value_ref`. */
export interface SecretShare {
  key: string;
  scope: string[];
  value_ref: string;
  expires_at?: string | null;
  secret_type?: 'api_key' | 'credential' | 'database_url' | 'other' | 'token' | null;
}

/** Change some of the session's settings. */
export interface SessionConfigUpdate {
  changes: Record<string, unknown>;
  reason: string;
  metadata?: Record<string, unknown> | null;
}

/** Open a session. */
export interface SessionCreate {
  config: SessionConfig;
  name?: string | null;
  metadata?: Record<string, unknown> | null;
}

/** End the session; it cannot be reopened. */
export interface SessionEnd {
  reason: string;
  final_state: 'aborted' | 'completed' | 'timeout';
}

/** Join a session. The token is checked when the message enters and is not part of the body. */
export interface SessionJoin {
  participant: ParticipantAnnounce;
  supported_versions: number[];
  token?: unknown;
}

/** Leave the session. From the server, `participant` says who left. */
export interface SessionLeave {
  reason?: string | null;
  participant?: string | null;
}

/** The next part of the thinking. */
export interface ThinkingChunk {
  text: string;
}

/** End the thinking. */
export interface ThinkingEnd {
  summary?: string | null;
  duration_ms?: number | null;
}

/** Start a stream of thinking about a prompt. */
export interface ThinkingStart {
  agent: string;
  prompt_ref: string;
  visible_to: 'all' | 'approvers_only' | string[];
}

/** Vote yes on the gate of a proposal. */
export interface ToolApprove {
  tool_proposal: string;
  approver: string;
  comment?: string | null;
}

/** Run a proposal: the server sends the grant, the agent may confirm that it starts. */
export interface ToolExecute {
  tool_proposal: string;
  approved_by: string[];
  grant?: Grant | null;
  standing?: string[];
}

/** Output of a running tool. */
export interface ToolOutput {
  tool_proposal: string;
  stream: 'stderr' | 'stdout';
  text: string;
  complete: boolean;
  grant?: string | Grant | null;
}

/** Propose a tool call. */
export interface ToolPropose {
  tool_name: string;
  arguments: Record<string, unknown>;
  agent: string;
  risk_level: Risk;
  description: string;
  requires_approval: boolean;
  category: Category;
  suggested_approvers?: string[] | null;
  metadata?: Record<string, unknown> | null;
}

/** Vote no on the gate of a proposal. */
export interface ToolReject {
  tool_proposal: string;
  rejector: string;
  reason: string;
  suggestion?: string | null;
}

/** The result of a tool. */
export interface ToolResult {
  tool_proposal: string;
  success: boolean;
  duration_ms: number;
  result?: unknown;
  error?: string | null;
  grant?: string | Grant | null;
  metadata?: Record<string, unknown> | null;
}

/** The payload of each message type. */
export interface Payloads {
  'context.add': ContextAdd;
  'context.remove': ContextRemove;
  'context.update': ContextUpdate;
  'error': ErrorReport;
  'fork.create': ForkCreate;
  'fork.switch': ForkSwitch;
  'gate.approve': GateApprove;
  'gate.reject': GateReject;
  'gate.request': GateRequest;
  'gate.timeout': GateTimeout;
  'heartbeat.ping': HeartbeatPing;
  'heartbeat.pong': HeartbeatPong;
  'interrupt.acknowledge': InterruptAcknowledge;
  'interrupt.raise': InterruptRaise;
  'merge.execute': MergeExecute;
  'merge.propose': MergePropose;
  'participant.announce': ParticipantAnnounce;
  'participant.role_change': ParticipantRoleChange;
  'presence.update': PresenceUpdate;
  'prompt.amend': PromptAmend;
  'prompt.draft': PromptDraft;
  'prompt.submit': PromptSubmit;
  'response.chunk': ResponseChunk;
  'response.end': ResponseEnd;
  'response.start': ResponseStart;
  'secret.revoke': SecretRevoke;
  'secret.share': SecretShare;
  'session.config_update': SessionConfigUpdate;
  'session.create': SessionCreate;
  'session.end': SessionEnd;
  'session.join': SessionJoin;
  'session.leave': SessionLeave;
  'thinking.chunk': ThinkingChunk;
  'thinking.end': ThinkingEnd;
  'thinking.start': ThinkingStart;
  'tool.approve': ToolApprove;
  'tool.execute': ToolExecute;
  'tool.output': ToolOutput;
  'tool.propose': ToolPropose;
  'tool.reject': ToolReject;
  'tool.result': ToolResult;
}

/** A message of one type; `seq` is 0 for signals, which are not stored. */
export interface EnvelopeOf<T extends keyof Payloads> {
  v: number;
  id: string;
  ts: string;
  session: string;
  sender: string;
  type: T;
  payload: Payloads[T];
  ref?: string | null;
  seq?: number;
  causal_refs?: string[];
  fork?: string | null;
}

export type ReceivedEnvelope = { [T in keyof Payloads]: EnvelopeOf<T> }[keyof Payloads];
