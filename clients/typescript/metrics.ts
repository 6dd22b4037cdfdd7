/** Metrics of a job: pages and files. */
import type { operations } from '../../contracts/generated/openapi.js';
import type { JobMetric, Page } from '../../contracts/types.js';
import { ConnectionError } from './errors.js';
import { bodyOf, type Http } from './transport.js';

export type MetricsQuery = NonNullable<operations['listJobMetrics']['parameters']['query']>;

export type MetricsFileQuery = MetricsQuery & { format: Exclude<MetricsQuery['format'], 'json' | undefined> };

/** A file that is being received. Its content throws a ConnectionError when the connection breaks. */
export interface MetricsFile {
  /** By the server; of TensorBoard's files only those with such a name are read. */
  name: string;
  content: AsyncGenerator<Uint8Array, void>;
}

export async function metricsPage(
  http: Http,
  jobId: string,
  query: Omit<MetricsQuery, 'format'>,
): Promise<Page<JobMetric>> {
  const params = { path: { job_id: jobId }, query };
  const answer = http.GET('/v1/jobs/{job_id}/metrics', { params });
  return (await bodyOf(`metrics of ${jobId}`, answer)) as Page<JobMetric>;
}

export async function openMetricsFile(
  http: Http,
  jobId: string,
  query: MetricsFileQuery,
  options: { signal?: AbortSignal },
): Promise<MetricsFile> {
  const params = { path: { job_id: jobId }, query };
  const answer = http.GET('/v1/jobs/{job_id}/metrics', { params, parseAs: 'stream', ...options });
  const request = `metrics of ${jobId}`;
  const content = await bodyOf(request, answer);
  const { response } = await answer;
  const [, name = jobId] = /filename="([^"]*)"/.exec(response.headers.get('content-disposition') ?? '') ?? [];
  return { name, content: piecesOf(request, content as ReadableStream<Uint8Array>, options) };
}

async function* piecesOf(
  request: string,
  content: ReadableStream<Uint8Array>,
  { signal }: { signal?: AbortSignal },
): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const piece of content) yield piece;
  } catch (error) {
    signal?.throwIfAborted();
    throw new ConnectionError(request, error);
  }
}
