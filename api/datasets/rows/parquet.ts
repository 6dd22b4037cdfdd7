import { datasetKey } from '../../../contracts/index.js';
import { newUlid } from '../../../platform/random.js';
import type { ReadBytes } from '../../../platform/threads/serve-tasks.js';
import type { WrittenRows } from '../../contents/rows/row-writer.js';
import type { RowsDeps } from './deps.js';

/**
 * Yields the rows of a Parquet file. Its tables are found from its end, so the file is stored until all of it has been
 * read. Meanwhile it is stored like a dataset that is not recorded: garbage collection removes it if the server dies
 * here.
 */
export async function* parquetRows(
  body: AsyncIterable<Uint8Array>,
  { objects, inspector, project }: RowsDeps,
): AsyncGenerator<WrittenRows> {
  const key = datasetKey(`ds_${newUlid()}`);
  try {
    const { bytes: fileBytes } = await objects.put(key, body);
    const read: ReadBytes = (begin, end) => objects.get(key, { begin, end });
    const options = { owner: project, read };
    for (const rows of await inspector.run('planParquet', { file_bytes: fileBytes }, options))
      yield await inspector.run('readParquet', { file_bytes: fileBytes, ...rows }, options);
  } finally {
    await objects.delete([key]);
  }
}
