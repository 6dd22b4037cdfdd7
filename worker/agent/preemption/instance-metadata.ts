const TOKEN_PATH = '/latest/api/token';
const DATA_PATH = '/latest/meta-data/';
const TOKEN_TTL_SECONDS = 21_600;
const REQUEST_TIMEOUT_MS = 2_000;

/**
 * Reads EC2's instance metadata service, version 2. Each request needs a token, which is renewed when it is refused.
 */
export class InstanceMetadata {
  private token: string | null = null;

  /** Creates a client. @param url base URL without a path */
  constructor(private readonly url: string) {}

  /**
   * Reads a value.
   * @param name path below `/latest/meta-data/`
   * @returns null for 404
   */
  async read(name: string): Promise<string | null> {
    const path = `${DATA_PATH}${name}`;
    let reply = await this.get(path);
    if (reply.status === 401) {
      this.token = null;
      reply = await this.get(path);
    }
    if (reply.status === 404) return null;
    if (!reply.ok) throw new Error(`${path} answered ${reply.status}`);
    return reply.text();
  }

  private async get(path: string): Promise<Response> {
    this.token ??= await this.newToken();
    return this.request(path, 'GET', { 'X-aws-ec2-metadata-token': this.token });
  }

  private async newToken(): Promise<string> {
    const reply = await this.request(TOKEN_PATH, 'PUT', {
      'X-aws-ec2-metadata-token-ttl-seconds': String(TOKEN_TTL_SECONDS),
    });
    if (!reply.ok) throw new Error(`${TOKEN_PATH} answered ${reply.status}`);
    return reply.text();
  }

  private request(path: string, method: string, headers: Record<string, string>): Promise<Response> {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    return fetch(new URL(path, this.url), { method, headers, signal, redirect: 'error' });
  }
}
