import type { FailureCategory, FieldError } from './types.js';

/** Properties shared by all errors of one code. */
export interface ErrorKind {
  /** HTTP status in answers of the API; also classifies errors outside HTTP. */
  status: number;
  /** Title for users; the same for every error of the code. */
  title: string;
  /** True if the same request or job may succeed on a retry. */
  retryable: boolean;
  category: FailureCategory;
}

const kind = (status: number, category: FailureCategory, title: string, retryable = false): ErrorKind => ({
  status,
  title,
  retryable,
  category,
});

/** Catalogue of error codes. `docs/errors.md` is generated from it; a published code keeps its meaning. */
export const ERROR_CATALOGUE = {
  // requests
  malformed_json: kind(
    400,
    'user',
    'The body is not JSON in UTF-8, nests too deep, has too many values, or contains an unpaired surrogate',
  ),
  body_required: kind(400, 'user', 'The request needs a body'),
  invalid_parameter: kind(400, 'user', 'A path, query or header parameter is invalid'),
  bad_request: kind(400, 'user', 'The request could not be read'),
  unauthenticated: kind(401, 'user', 'A valid API key is required'),
  insufficient_scope: kind(403, 'user', 'The API key lacks the required scope'),
  csrf_rejected: kind(403, 'user', 'The request of a browser session does not come from the console'),
  route_not_found: kind(404, 'user', 'The route does not exist'),
  method_not_allowed: kind(405, 'user', 'The route does not have this method'),
  payload_too_large: kind(413, 'user', 'The body is too large'),
  content_too_complex: kind(422, 'data', 'The content takes too much time or memory to read'),
  unsupported_media_type: kind(415, 'user', 'The content type or its encoding is not supported'),
  request_timeout: kind(408, 'user', 'The request did not arrive in time', true),
  headers_too_large: kind(431, 'user', 'The headers of the request are too large'),
  validation_failed: kind(422, 'user', 'The document has invalid fields'),
  idempotency_key_reused: kind(422, 'user', 'The idempotency key was used with another request'),
  idempotency_key_in_use: kind(409, 'user', 'A request with this idempotency key is in progress', true),
  response_not_repeatable: kind(409, 'user', 'The request was executed; its answer is shown only once'),
  rate_limited: kind(429, 'user', 'Too many requests', true),

  // jobs
  job_not_found: kind(404, 'user', 'The job does not exist'),
  position_lost: kind(410, 'user', 'The position was lost with the data of Redis'),
  job_final: kind(409, 'user', 'The job has ended'),
  version_mismatch: kind(412, 'user', 'The record has changed since it was read'),
  invalid_state: kind(409, 'user', 'The state of the job does not allow the request'),
  invalid_transition: kind(500, 'internal', 'The state transition of the job is not allowed'),
  stale_epoch: kind(409, 'internal', 'Another worker has claimed the job'),
  lease_held: kind(409, 'internal', 'Another worker holds the job', true),
  attempt_superseded: kind(409, 'internal', 'A newer attempt of the job exists'),
  job_paused: kind(409, 'internal', 'The job is paused'),
  insufficient_memory: kind(422, 'user', 'The job does not fit into the memory of the GPUs'),
  not_a_session: kind(409, 'user', 'The job is not a session'),
  calls_read_only: kind(409, 'user', 'The objective of the job writes its calls'),
  no_rollouts: kind(409, 'user', 'The job has no reinforcement learning'),
  rollout_not_found: kind(404, 'user', 'The step has no samples with rewards'),
  grading_failed: kind(502, 'internal', 'Too many samples of a step could not be graded', true),
  call_not_found: kind(404, 'user', 'The session has no call of this number'),
  call_conflict: kind(409, 'user', 'The session has another call under this number'),
  call_out_of_order: kind(409, 'user', 'The number is not the next one of the session'),
  too_many_calls: kind(429, 'user', 'Too many calls of the session wait for their results', true),
  session_finished: kind(409, 'user', 'A call has finished the session'),
  no_gradients: kind(409, 'user', 'No pass has added gradients since the last update'),
  gradients_pending: kind(409, 'user', 'Gradients wait for an update and are not part of a checkpoint'),
  replay_differs: kind(500, 'internal', 'A repeated call gives another result than before'),
  checkpoint_in_use: kind(
    409,
    'user',
    'The checkpoint is the newest, or the best of early stopping, of an unfinished job',
  ),
  checkpoint_held: kind(
    409,
    'user',
    'A job or an export reads the checkpoint, or adapters of a job are over it',
  ),
  checkpoint_not_newest: kind(409, 'user', 'The checkpoint is not the newest of its job'),
  checkpoint_pinned: kind(409, 'user', 'The checkpoint is pinned'),

  // datasets
  dataset_not_found: kind(404, 'data', 'The dataset does not exist'),
  dataset_empty: kind(422, 'data', 'The dataset is empty'),
  dataset_parquet_invalid: kind(422, 'data', 'The dataset is not a Parquet file that can be read'),
  dataset_compression_invalid: kind(422, 'data', 'The compressed dataset cannot be unpacked'),
  dataset_not_utf8: kind(422, 'data', 'The dataset is not UTF-8 text'),
  dataset_too_large: kind(413, 'data', 'The dataset is too large'),
  dataset_in_use: kind(409, 'user', 'A job that has not ended uses the dataset'),
  dataset_corrupt: kind(500, 'data', 'The stored dataset does not match its digest'),
  dataset_line_invalid: kind(422, 'data', 'A line of the dataset cannot be read'),
  chat_template_invalid: kind(422, 'data', 'The chat template cannot be used'),
  tokenizer_invalid: kind(422, 'data', 'The tokenizer cannot be used'),
  dataset_too_small: kind(422, 'data', 'The dataset is too small for the job'),
  no_targets: kind(422, 'data', 'No token of the data counts as a target'),
  dataset_tokens_invalid: kind(422, 'data', 'The dataset is not a valid token file'),
  token_out_of_vocab: kind(422, 'data', "A token is outside of the model's vocabulary"),
  dataset_uri_refused: kind(403, 'user', 'Copying from this location is not allowed'),
  dataset_source_missing: kind(422, 'data', 'The URI does not name an existing object'),
  dataset_source_denied: kind(422, 'data', 'The server may not read the object'),
  dataset_source_changed: kind(409, 'data', 'The object changed while it was read', true),
  dataset_source_corrupt: kind(422, 'data', 'The source sent other bytes than it lists'),
  hub_unavailable: kind(503, 'internal', 'The Hugging Face Hub does not answer', true),
  hub_throttled: kind(503, 'capacity', 'The Hugging Face Hub limits requests', true),
  upload_not_found: kind(404, 'user', 'The upload does not exist'),
  upload_incomplete: kind(409, 'user', 'Parts of the upload are missing'),
  upload_part_invalid: kind(422, 'user', 'The part does not belong to the upload'),
  upload_digest_mismatch: kind(422, 'data', 'The content does not match the announced size or digest'),
  upload_interrupted: kind(400, 'user', 'The upload ended early', true),

  // models
  model_not_found: kind(404, 'user', 'The model does not exist'),
  model_in_use: kind(409, 'user', 'A job that has not ended uses the model, or adapters are over it'),
  model_base_invalid: kind(422, 'user', 'The base of the adapter is not a whole model'),
  model_too_large: kind(413, 'data', 'The model is too large'),
  model_archive_invalid: kind(422, 'data', 'The model is not a readable tar archive of one folder'),
  model_file_missing: kind(422, 'data', 'A file of the model is missing'),
  model_config_invalid: kind(422, 'data', "The model's config.json cannot be trained here"),
  model_index_mismatch: kind(422, 'data', "The model's index and its files do not agree"),
  model_tensor_missing: kind(422, 'data', 'A tensor of the model is missing'),
  model_tensor_unexpected: kind(
    422,
    'data',
    'The model has a tensor that its configuration does not describe',
  ),
  model_tensor_mismatch: kind(422, 'data', 'A tensor of the model has the wrong shape or dtype'),
  base_damaged: kind(500, 'data', 'The base of the adapters is damaged, or is another one than in training'),
  model_corrupt: kind(500, 'data', 'A stored model does not match its checksums'),
  safetensors_invalid: kind(422, 'data', 'A safetensors file is malformed'),
  optimizer_state_invalid: kind(422, 'data', 'The state of the optimizer is not complete'),
  torch_file_invalid: kind(422, 'data', 'A PyTorch file is malformed'),
  torch_file_unsafe: kind(
    422,
    'data',
    'The pickle of a PyTorch file contains more than tensors and plain values',
  ),

  // access
  share_not_found: kind(404, 'user', 'The share does not exist'),
  too_many_shares: kind(409, 'user', 'The job has reached its maximum number of shares'),
  outside_share: kind(403, 'user', 'The share does not allow the request'),
  api_key_not_found: kind(404, 'user', 'The API key does not exist'),
  principal_not_found: kind(404, 'user', 'The key, user or share does not exist'),
  jobs_quota_exceeded: kind(403, 'limit', 'The project has reached its quota of unfinished jobs'),
  ranks_quota_exceeded: kind(403, 'limit', 'The project has reached its quota of requested ranks'),
  storage_quota_exceeded: kind(403, 'limit', 'The project has reached its storage quota'),
  api_key_builtin: kind(409, 'user', "The API key is set by the server's configuration"),

  // sweeps
  sweep_not_found: kind(404, 'user', 'The sweep does not exist'),
  sweep_final: kind(409, 'user', 'The sweep has ended'),
  sweep_unfinished: kind(409, 'user', 'The sweep has not ended'),
  too_many_sweeps: kind(409, 'user', 'The project has reached its maximum number of sweeps'),

  // webhooks
  webhook_not_found: kind(404, 'user', 'The webhook does not exist'),
  delivery_not_found: kind(404, 'user', 'The log of the webhook has no such message'),
  too_many_webhooks: kind(409, 'user', 'The project has reached its quota of webhooks'),

  // object store and Redis
  object_not_found: kind(500, 'internal', 'An object is missing in the object store'),
  precondition_failed: kind(500, 'internal', 'An object exists already'),
  invalid_key: kind(500, 'internal', 'An object key is not allowed'),
  export_not_found: kind(404, 'user', 'The export does not exist'),
  range_not_satisfiable: kind(416, 'user', 'The file ends before the range begins'),
  invalid_range: kind(500, 'internal', 'An object is shorter than expected'),
  invalid_argument: kind(500, 'internal', 'The object store was called incorrectly'),
  bucket_not_found: kind(503, 'internal', 'The bucket does not exist', true),
  access_denied: kind(503, 'internal', 'The object store refuses access', true),
  disk_full: kind(507, 'capacity', 'The object store has no space left', true),
  object_store_unavailable: kind(503, 'internal', 'The object store does not answer', true),
  throttled: kind(503, 'capacity', 'The object store throttles requests', true),
  credentials_unavailable: kind(
    503,
    'internal',
    'The credentials of a worker or its job are missing or have expired',
    true,
  ),
  job_store_unavailable: kind(503, 'internal', 'The job store (Redis) does not answer', true),
  redis_full: kind(503, 'capacity', 'The memory of Redis is full: delete jobs that have ended', true),
  document_invalid: kind(500, 'internal', 'A document in the object store is malformed'),
  shutting_down: kind(503, 'internal', 'The server is shutting down', true),

  // checkpoints and export
  manifest_invalid: kind(500, 'internal', 'A checkpoint manifest is malformed'),
  weight_out_of_range: kind(422, 'user', 'A weight does not fit the format of the export'),
  shard_corrupt: kind(500, 'internal', 'A checkpoint shard does not match its checksum'),
  checkpoint_incomplete: kind(500, 'internal', 'A checkpoint does not cover the whole state'),
  checkpoint_mismatch: kind(409, 'user', 'A checkpoint does not fit the job'),
  checkpoint_not_found: kind(404, 'user', 'The checkpoint does not exist'),
  tensor_invalid: kind(422, 'data', 'The file is not a tensor that can replace the one of the checkpoint'),
  edit_not_found: kind(404, 'user', 'The change of a tensor does not exist, or is no longer remembered'),
  tensor_not_found: kind(404, 'user', 'The checkpoint has no such tensor, or no such state of it'),
  sample_timeout: kind(504, 'capacity', 'No worker of the pool answered in time', true),
  model_loading: kind(503, 'capacity', 'A worker is loading the model', true),
  sample_queue_full: kind(503, 'capacity', 'Too many requests wait for the pool', true),
  pool_not_found: kind(404, 'user', 'The pool has neither a worker nor a job'),
  model_does_not_fit: kind(503, 'capacity', 'The model is larger than the memory of the worker', true),
  model_memory_in_use: kind(503, 'capacity', 'Models in use occupy the memory that the model needs', true),
  prompt_too_long: kind(422, 'user', "The prompt exceeds the model's context"),
  checkpoint_save_failed: kind(500, 'internal', 'A checkpoint could not be saved', true),
  export_unsupported: kind(422, 'user', 'The format cannot hold the model'),
  export_failed: kind(500, 'internal', 'The model could not be exported', true),

  // training
  workers_lost: kind(500, 'hardware', 'The job lost too many workers in succession', true),
  rank_lost: kind(500, 'hardware', 'A rank ended unexpectedly', true),
  rank_unresponsive: kind(500, 'hardware', 'A rank stopped reporting', true),
  out_of_memory: kind(500, 'oom', 'A rank ran out of memory'),
  threads_unavailable: kind(500, 'oom', 'A rank could not start more threads', true),
  too_many_mappings: kind(500, 'oom', 'A rank reached the limit of memory mappings', true),
  shared_memory_unavailable: kind(500, 'internal', 'Ranks on one machine cannot share memory', true),
  oom_killed: kind(500, 'oom', 'A rank was killed because memory ran out', true),
  node_lost: kind(500, 'hardware', 'A worker that runs ranks of the job was lost', true),
  gpu_lost: kind(500, 'hardware', 'A GPU, or its driver, failed under a rank', true),
  gpu_memory_fault: kind(500, 'hardware', "A GPU's memory failed under a rank", true),
  gpu_fault: kind(500, 'internal', 'A GPU kernel performed an invalid operation'),
  device_unavailable: kind(500, 'hardware', 'A GPU is missing or unusable', true),
  device_failed: kind(500, 'hardware', 'CUDA reported an error', true),
  operation_unsupported: kind(500, 'internal', 'The device has no implementation of an operation'),
  tokens_mismatch: kind(
    500,
    'internal',
    'Tokens of the data differ from those of an earlier attempt or another worker',
    true,
  ),
  numerics_mismatch: kind(500, 'internal', 'Ranks of one job would compute different bits', true),
  diverged: kind(500, 'diverged', 'The gradients stay non-finite'),
  token_file_unreadable: kind(500, 'hardware', 'A rank could not read its token file', true),
  comm_unavailable: kind(500, 'internal', 'A worker lacks the communication library of the ranks', true),
  comm_timeout: kind(500, 'hardware', 'The communication of the ranks timed out', true),
  comm_failed: kind(500, 'hardware', 'The ranks lost their connection', true),
  native_error: kind(500, 'internal', 'The native core reported an error'),
  errors_exhausted: kind(500, 'internal', 'The job failed more often than its retry budget allows'),
  link_protocol: kind(500, 'internal', 'Another worker violated the protocol', true),
  link_refused: kind(403, 'internal', 'Another worker failed to authenticate as part of the world', true),
  worker_draining: kind(503, 'preempted', 'The worker is shutting down', true),

  // starting up
  invalid_configuration: kind(500, 'user', 'A configuration variable is invalid'),
  redis_server_missing: kind(500, 'internal', 'No Redis server program was found'),

  internal_error: kind(500, 'internal', 'Unexpected error'),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

interface ZerofleetErrorOptions {
  /** JSON pointer of the bad field. */
  pointer?: string;
  /** Every bad field, if there are several. */
  fields?: FieldError[];
  /** Details for the log and for events; never secrets. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

/**
 * Error that crosses module and process boundaries: its `code` is in the catalogue, its `message` may be shown to the
 * client.
 */
export class ZerofleetError extends Error {
  override readonly name = 'ZerofleetError';
  readonly pointer: string | undefined;
  readonly fields: readonly FieldError[];
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ZerofleetErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.pointer = options.pointer;
    this.fields = options.fields ?? [];
    this.details = options.details ?? {};
  }

  get kind(): ErrorKind {
    return ERROR_CATALOGUE[this.code];
  }
}

/** True if a string is a code of the catalogue. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CATALOGUE, code);
}
