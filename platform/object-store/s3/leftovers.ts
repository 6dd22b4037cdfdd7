import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, type S3Client } from '@aws-sdk/client-s3';
import type { AbandonOptions } from '../common/port.js';

/** Aborts multipart uploads in progress below a prefix. @returns their number */
export async function abandonUploads(
  client: S3Client,
  { Bucket, Prefix }: { Bucket: string; Prefix: string },
  { began_before, only_count = false, confirm }: AbandonOptions,
): Promise<number> {
  let count = 0;
  let KeyMarker: string | undefined;
  let UploadIdMarker: string | undefined;
  for (;;) {
    const page = await client.send(
      new ListMultipartUploadsCommand({ Bucket, Prefix, KeyMarker, UploadIdMarker }),
    );
    // An upload without a start time may have begun just now.
    const found = (page.Uploads ?? []).filter(
      ({ Initiated }) => !began_before || (Initiated && Initiated < began_before),
    );
    count += found.length;
    if (found.length > 0 && !only_count) await confirm?.();
    for (const { Key, UploadId } of only_count ? [] : found)
      await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(passIfGone);
    if (!page.IsTruncated) return count;
    KeyMarker = page.NextKeyMarker;
    UploadIdMarker = page.NextUploadIdMarker;
  }
}

/** Ignores an upload that was ended since it was listed. */
function passIfGone(error: unknown): void {
  if (!(error instanceof Error) || error.name !== 'NoSuchUpload') throw error;
}
