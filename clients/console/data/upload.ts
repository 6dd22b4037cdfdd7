/** Uploads of files, with their progress. */

import { formatOfName } from '../../../contracts/dataset-names.js';
import type { Dataset, Model } from '../../../contracts/types.js';
import { ApiError } from '../../typescript/index.js';
import { sendingClient } from './send.js';
import { tarOf } from './tar.js';

/** @param share of what is sent, 0 to 1 */
export type Report = (share: number) => void;

/** Sends a file in parts through the API. What was sent of an upload that fails is removed. */
export async function uploadDataset(file: File, report: Report, signal: AbortSignal): Promise<Dataset> {
  let begun = 0;
  const { uploads } = sendingClient((sent) => report((begun + sent) / file.size), signal).datasets;
  const { id } = await uploads.begin({ name: file.name, format: formatOfName(file.name), bytes: file.size });
  const read = async (begin: number, end: number) => {
    begun = begin;
    return new Uint8Array(await file.slice(begin, end).arrayBuffer());
  };
  try {
    // The page may connect to its own server only.
    return await uploads.resume(id, read, { via: 'api', signal });
  } catch (error) {
    const kept = sendingClient(() => {}, new AbortController().signal);
    await kept.datasets.uploads.delete(id).catch(() => {});
    throw namingFile(error, file.name);
  }
}

/** The error of one of several files, with its name. */
function namingFile(error: unknown, name: string): unknown {
  if (!(error instanceof ApiError) || error.problem === null) return error;
  const { problem, status } = error;
  const detail = `${name}: ${problem.detail ?? problem.title}`;
  return new ApiError(status, { ...problem, detail }, `upload of ${name}`);
}

/** Sends the files of a model's folder, or an archive of it. @param name of the model */
export function uploadModel(
  files: readonly File[],
  name: string,
  report: Report,
  signal: AbortSignal,
): Promise<Model> {
  const [first] = files;
  const isArchive = files.length === 1 && first?.name.endsWith('.tar');
  const archive =
    isArchive && first ? first : tarOf(files.map((file) => ({ name: file.name, content: file })));
  const sender = sendingClient((sent) => report(sent / archive.size), signal);
  return sender.models.create(name, archive);
}
