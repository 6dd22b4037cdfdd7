/** Limits that protect the server: configurable by operators, small in tests. */
export interface ApiLimits {
  /** Maximum size of a JSON body, in bytes. */
  json_body_bytes: number;
  /** Maximum size of a call of a session, in bytes. */
  call_bytes: number;
  /** Maximum size of a dataset, in bytes. */
  dataset_bytes: number;
  /** Size of the parts of a resumable upload, in bytes. */
  part_bytes: number;
  /** Maximum size of a model archive, in bytes. */
  model_bytes: number;
  /** Requests per minute of one key, or of one address without a key. */
  requests_per_minute: number;
  /** Interval of comments on an idle stream, so that proxies and clients keep the connection. */
  heartbeat_ms: number;
  /**
   * Idle timeout of a connection without traffic in both directions, such as after a client has vanished in mid-upload.
   */
  idle_connection_ms: number;
  /**
   * Time for the headers of a request to arrive, and then for the JSON body. Uploads have no limit while data arrives.
   */
  headers_timeout_ms: number;
  json_body_timeout_ms: number;
  /** Time for which a sample waits without a worker that works on it. */
  sample_timeout_ms: number;
  /** Time for which a sample waits for its model to be loaded. */
  model_loading_ms: number;
  /** CPU time and JavaScript heap of a thread that parses one piece of client content. */
  inspection_ms: number;
  inspection_heap_mb: number;
  /** Timeout of Redis and object store checks in a readiness check. */
  readiness_timeout_ms: number;
}

export const DEFAULT_LIMITS: Readonly<ApiLimits> = {
  json_body_bytes: 1024 * 1024,
  call_bytes: 16 * 1024 ** 2,
  dataset_bytes: 16 * 1024 ** 3,
  part_bytes: 16 * 1024 ** 2,
  model_bytes: 512 * 1024 ** 3,
  requests_per_minute: 6000,
  heartbeat_ms: 15_000,
  idle_connection_ms: 120_000,
  headers_timeout_ms: 20_000,
  json_body_timeout_ms: 30_000,
  sample_timeout_ms: 60_000,
  model_loading_ms: 300_000,
  inspection_ms: 60_000,
  inspection_heap_mb: 1024,
  readiness_timeout_ms: 2_000,
};
