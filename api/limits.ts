/** Bounds that protect the server; an operator's defaults, and what tests make small. */
export interface ApiLimits {
  /** Largest JSON body, in bytes. */
  json_body_bytes: number;
  /** Largest dataset, in bytes. */
  dataset_bytes: number;
  /** Size of the parts of an upload that can be interrupted, in bytes. */
  part_bytes: number;
  /** Largest archive of a model, in bytes. */
  model_bytes: number;
  /** Requests of one key, or of one address without a key, in one minute. */
  requests_per_minute: number;
  /** How often a quiet stream sends a comment, so that proxies and clients know that it lives. */
  heartbeat_ms: number;
  /** How long a connection may be silent in both directions, as one is whose client has vanished in mid-upload. */
  idle_connection_ms: number;
  /** How long the headers of a request may take to arrive, and then the JSON body. Uploads may take as long as something comes. */
  headers_timeout_ms: number;
  json_body_timeout_ms: number;
  /** How long a sample may take, from the request until a worker's answer. */
  sample_timeout_ms: number;
  /** How long a thread may compute to understand one thing that came from a client, and its JavaScript memory. */
  inspection_ms: number;
  inspection_heap_mb: number;
  /** How long a readiness check waits for Redis and the object store. */
  readiness_timeout_ms: number;
}

export const DEFAULT_LIMITS: Readonly<ApiLimits> = {
  json_body_bytes: 1024 * 1024,
  dataset_bytes: 16 * 1024 ** 3,
  part_bytes: 16 * 1024 ** 2,
  model_bytes: 512 * 1024 ** 3,
  requests_per_minute: 6000,
  heartbeat_ms: 15_000,
  idle_connection_ms: 120_000,
  headers_timeout_ms: 20_000,
  json_body_timeout_ms: 30_000,
  sample_timeout_ms: 60_000,
  inspection_ms: 60_000,
  inspection_heap_mb: 1024,
  readiness_timeout_ms: 2_000,
};
