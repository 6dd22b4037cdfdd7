/** The first bytes of a dataset. */
import type { Dataset } from '../../../contracts/types.js';
import { ApiError } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { PREVIEW_BYTES, previewOf } from './preview.js';

/** Returns the first lines of a dataset; none of token files. */
export async function beginningOf(
  { id, format, bytes: size }: Dataset,
  signal: AbortSignal,
): Promise<string[]> {
  if (format === 'tokens') return [];
  const { data, error, response } = await client.http.GET('/v1/datasets/{dataset_id}/content', {
    params: { path: { dataset_id: id } },
    headers: { Range: `bytes=0-${PREVIEW_BYTES - 1}` },
    parseAs: 'arrayBuffer',
    signal,
  });
  if (data === undefined) throw new ApiError(response.status, error ?? null, `content of ${id}`);
  return previewOf(new Uint8Array(data), format, size <= PREVIEW_BYTES);
}
