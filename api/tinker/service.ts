/** Requests about the service itself. A session of a client keeps nothing here: its models are jobs. */
import type { FastifyInstance } from 'fastify';
import { ulid } from 'ulid';
import { MAX_PENDING } from '../jobs/session-calls.js';
import { routeAs } from '../openai/route-as.js';
import { MAX_ROWS } from './models.js';

/** Bytes of the rows of a call in protobuf; as JSON they have some three times as many. */
const MAX_CALL_BYTES = 4_000_000;
/** Uploaded models that are named, the newest. */
const LISTED = 100;

/** Rows that exceed one call are sent as several calls in their order. */
const CONFIG = {
  pjwt_auth_enabled: false,
  parallel_fwdbwd_chunks: false,
  proto_compress_fwdbwd: false,
  fwdbwd_max_chunk_len: MAX_ROWS,
  fwdbwd_max_chunk_bytes_count: MAX_CALL_BYTES,
  // A sample with the log-probabilities of its prompt is two calls.
  sample_max_concurrent_requests: MAX_PENDING / 2,
  use_pyqwest_transport: false,
  create_model_via_load_weights: true,
};

export async function serviceRoutes(app: FastifyInstance): Promise<void> {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.post('/client/config', async () => CONFIG);
  app.post('/client/dynamic_config', async () => ({ refresh_interval_sec: 300 }));
  app.post('/create_session', async () => ({ type: 'create_session', session_id: ulid() }));
  app.post('/session_heartbeat', async () => ({ type: 'session_heartbeat' }));
  app.post('/telemetry', async () => ({ status: 'accepted' }));
  app.get('/get_server_capabilities', routeAs(app, 'listModels'), async ({ records }) => {
    const { data } = await records.listModels({ limit: LISTED });
    const complete = data.filter(({ model_type }) => model_type !== null);
    return { supported_models: complete.map(({ name }) => ({ model_name: name })) };
  });
}
