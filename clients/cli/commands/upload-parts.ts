import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Dataset, Upload } from '../../../contracts/index.js';
import { bytes } from '../../text/numbers.js';
import { bytesView } from '../bytes-bar.js';
import { CliError, type Context, EXIT } from '../context.js';

/** Minimum size of files that are sent in parts: long uploads are likely to be interrupted. */
export const IN_PARTS_BYTES = 64 * 1024 ** 2;

interface FileToSend {
  file: string;
  size: number;
  name: string;
  format: Dataset['format'];
  via: 'auto' | 'api';
}

/**
 * Sends a file in parts. Ctrl-C keeps the received parts and prints how to resume. @param resumed an interrupted upload
 * of this file
 */
export async function uploadInParts(
  context: Context,
  source: FileToSend,
  resumed: string | undefined,
): Promise<Dataset> {
  const { file, size, name, format, via } = source;
  const { uploads } = context.client.datasets;
  const digest = await digestOf(file, context.signal);
  const upload = resumed
    ? await uploads.get(resumed)
    : await uploads.begin({ name, format, bytes: size, digest });
  if (upload.digest !== digest || upload.bytes !== size)
    throw new CliError(`${file} is not the file of upload ${upload.id}`, EXIT.usage);
  context.interruptMessage = `received parts are kept for a day; to resume: zerofleet datasets upload ${file} --resume ${upload.id}`;
  const content = await open(file);
  try {
    return await send(context, upload, content, { file, via });
  } finally {
    await content.close();
  }
}

async function send(
  context: Context,
  upload: Upload,
  content: FileHandle,
  { file, via }: Pick<FileToSend, 'file' | 'via'>,
): Promise<Dataset> {
  const { signal } = context;
  const view = bytesView(context, upload.bytes);
  const received = upload.received_parts.length;
  if (received > 0) context.note(`${received} of ${upload.num_parts} parts have arrived`);
  view.label(file);
  let sent = 0;
  try {
    const read = async (begin: number, end: number) => {
      signal.throwIfAborted();
      const part = Buffer.alloc(end - begin);
      const { bytesRead } = await content.read(part, 0, part.length, begin);
      if (bytesRead < part.length)
        throw new CliError(`${file} has become shorter while it was read`, EXIT.failed);
      // The parts before this one have arrived.
      view.add(begin - sent);
      sent = begin;
      return part;
    };
    const dataset = await context.client.datasets.uploads.resume(upload.id, read, { signal, via });
    view.add(upload.bytes - sent);
    return dataset;
  } finally {
    view.close();
  }
}

/** Digest of the file, to detect that it has changed since its upload began. */
async function digestOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(file, { signal })) hash.update(piece as Buffer);
  return `sha256:${hash.digest('hex')}`;
}

/** Minimum size for uploads in parts, for the help text. */
export const inPartsFrom = bytes(IN_PARTS_BYTES);
