/**
 * Seal of a manifest's text: its last member is the SHA-256 of every byte before that member's value. The
 * schema only detects malformed documents; a changed digit in a seed, a step or a digest would still be a
 * valid manifest of another training.
 */
import { createHash } from 'node:crypto';

const LAST_MEMBER = ',"sha256":"';
const HEX_DIGITS = 64;
const END = '"}';

/** Returns the text of a JSON object with the seal as its last member. */
export function seal(value: object): Buffer {
  const head = `${JSON.stringify(value).slice(0, -1)}${LAST_MEMBER}`;
  return Buffer.from(`${head}${digestOf(Buffer.from(head))}${END}`);
}

/** Returns whether all bytes are as `seal` wrote them. */
export function isSealed(bytes: Uint8Array): boolean {
  const tailBytes = HEX_DIGITS + END.length;
  const head = bytes.subarray(0, Math.max(0, bytes.length - tailBytes));
  const tail = `${digestOf(head)}${END}`;
  return (
    Buffer.from(head).subarray(-LAST_MEMBER.length).equals(Buffer.from(LAST_MEMBER)) &&
    Buffer.from(bytes).subarray(-tailBytes).equals(Buffer.from(tail))
  );
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
