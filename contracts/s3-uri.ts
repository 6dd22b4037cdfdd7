/** An object of S3 as people write it: `s3://bucket/key`. */
export interface S3Uri {
  bucket: string;
  key: string;
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const LIKE_AN_ADDRESS = /^\d+(\.\d+){3}$/;
const MAX_KEY_BYTES = 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no key may have.
const NOT_IN_A_KEY = /[\u0000-\u001f\u007f\\%]/;

/** As S3 itself has the names of buckets; none can be read as a host or an address. */
export function isBucketName(text: string): boolean {
  return BUCKET.test(text) && !text.includes('..') && !LIKE_AN_ADDRESS.test(text);
}

/**
 * Why a text is no key that may be asked for, as the rest of a sentence; null when it is one. The rules are stricter than S3's: a
 * segment of dots, or one that somebody on the way decodes to dots, would lead out of the bucket where a bucket is part of the path.
 */
export function keyFault(key: string): string | null {
  if (key === '') return 'has no key behind the bucket';
  if (new TextEncoder().encode(key).length > MAX_KEY_BYTES)
    return `has a key of more than ${MAX_KEY_BYTES} bytes`;
  if (/\p{Surrogate}/u.test(key)) return 'has half a surrogate pair in its key';
  if (NOT_IN_A_KEY.test(key))
    return 'has a control character, a backslash or a percent sign in its key; write the key as it is, not encoded';
  if (key.split('/').some((part) => part === '' || part === '.' || part === '..'))
    return "has an empty part, '.' or '..' in its key";
  return null;
}

/**
 * Reads `s3://bucket/key`. It is not read as a URL: those are decoded, and their dots followed.
 * @throws Error whose message says what is wrong, as the rest of a sentence
 */
export function parseS3Uri(text: string): S3Uri {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/s.exec(text) ?? [];
  if (!isBucketName(bucket)) throw new Error('is not of the form s3://bucket/key');
  const fault = keyFault(key);
  if (fault !== null) throw new Error(fault);
  return { bucket, key };
}
