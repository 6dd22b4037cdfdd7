/** An S3 object as `s3://bucket/key`. */
export interface S3Uri {
  bucket: string;
  key: string;
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const LIKE_AN_ADDRESS = /^\d+(\.\d+){3}$/;
const MAX_KEY_BYTES = 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: no key may contain these.
const NOT_IN_A_KEY = /[\u0000-\u001f\u007f\\%]/;

/** True for valid S3 bucket names; none of them can be parsed as a host or an address. */
export function isBucketName(text: string): boolean {
  return BUCKET.test(text) && !text.includes('..') && !LIKE_AN_ADDRESS.test(text);
}

/**
 * Reason why a text is not a usable key, as the rest of a sentence; null for a valid key. The rules are stricter than
 * S3's. If the bucket is part of the path, a segment of dots, or one that a proxy decodes to dots, would leave the
 * bucket.
 * @param noun name of the key in the reason
 */
export function keyFault(key: string, noun = 'key'): string | null {
  if (key === '') return 'has no key behind the bucket';
  if (new TextEncoder().encode(key).length > MAX_KEY_BYTES)
    return `has a ${noun} of more than ${MAX_KEY_BYTES} bytes`;
  if (/\p{Surrogate}/u.test(key)) return `has an unpaired surrogate in its ${noun}`;
  if (NOT_IN_A_KEY.test(key))
    return `has a control character, a backslash or a percent sign in its ${noun}; write the ${noun} as it is, not encoded`;
  if (key.split('/').some((part) => part === '' || part === '.' || part === '..'))
    return `has an empty part, '.' or '..' in its ${noun}`;
  return null;
}

/**
 * Parses `s3://bucket/key`. It is not parsed as a URL, because URL parsers decode the key and resolve dots.
 * @throws Error whose message completes a sentence
 */
export function parseS3Uri(text: string): S3Uri {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/s.exec(text) ?? [];
  if (!isBucketName(bucket)) throw new Error('is not of the form s3://bucket/key');
  const fault = keyFault(key);
  if (fault !== null) throw new Error(fault);
  return { bucket, key };
}
