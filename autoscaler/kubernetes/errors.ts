/** Answer of the API server that is no success, or none at all. */
export class KubernetesError extends Error {
  override readonly name = 'KubernetesError';

  /**
   * @param status HTTP status, or `code` of a Status object in a watch; 0: no answer
   * @param message the server's, or the network's
   */
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Returns the error of a Status object, which every failure has unless a proxy answers. */
export function errorOf(status: number, body: string): KubernetesError {
  try {
    const { code = status, message, reason } = JSON.parse(body) as Record<string, unknown>;
    const text = [message, reason].find((each) => typeof each === 'string' && each !== '');
    return new KubernetesError(Number(code), String(text ?? `status ${status}`));
  } catch {
    return new KubernetesError(status, `status ${status}: ${body.slice(0, 200)}`);
  }
}
