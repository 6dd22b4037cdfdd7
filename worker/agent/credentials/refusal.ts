/** STS error names that a retry does not resolve. */
const REFUSALS: ReadonlySet<string> = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'InvalidClientTokenId',
  'MalformedPolicyDocument',
  'NoSuchEntity',
  'PackedPolicyTooLarge',
  'RegionDisabledException',
  'SignatureDoesNotMatch',
  'ValidationError',
]);

/** Returns whether STS refused the request, so that only a change of a role or policy helps. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(String(((error as Error).cause as Error | undefined)?.name));
}
