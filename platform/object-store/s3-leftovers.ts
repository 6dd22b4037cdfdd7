import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, type S3Client } from '@aws-sdk/client-s3';

/** Aborts every upload in parts that is under way below a prefix. @returns how many there were */
export async function abandonUploads(
  client: S3Client,
  { Bucket, Prefix }: { Bucket: string; Prefix: string },
): Promise<number> {
  let count = 0;
  let KeyMarker: string | undefined;
  let UploadIdMarker: string | undefined;
  for (;;) {
    const page = await client.send(
      new ListMultipartUploadsCommand({ Bucket, Prefix, KeyMarker, UploadIdMarker }),
    );
    for (const { Key, UploadId } of page.Uploads ?? []) {
      await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(passIfGone);
      count += 1;
    }
    if (!page.IsTruncated) return count;
    KeyMarker = page.NextKeyMarker;
    UploadIdMarker = page.NextUploadIdMarker;
  }
}

/** An upload that somebody else ended since it was listed is what was wanted. */
function passIfGone(error: unknown): void {
  if (!(error instanceof Error) || error.name !== 'NoSuchUpload') throw error;
}
