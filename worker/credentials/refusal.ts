/** What STS calls errors that another try does not mend. */
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

/** Whether STS understood and refused, so that only somebody's change of a role or policy helps. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(String(((error as Error).cause as Error | undefined)?.name));
}
