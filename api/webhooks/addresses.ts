/** Where messages may be sent: to public addresses over TLS, and to whatever the operator has allowed. */
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Public by its number, but the host's own metadata service on Azure. */
const METADATA = new Set(['168.63.129.16']);

export class AddressPolicy {
  private readonly allowed: readonly [Address, number][];

  /** @param allowed CIDR ranges, e.g. `10.1.0.0/16`, that are not public and may be reached all the same, also without TLS */
  constructor(allowed: readonly string[]) {
    this.allowed = allowed.map((range) => ipaddr.parseCIDR(range));
  }

  /** What speaks against a URL before anything is resolved; null when nothing does. */
  objectionTo(url: string): string | null {
    if (!URL.canParse(url)) return 'it is not a URL';
    const { protocol, hostname, username, password, hash } = new URL(url);
    if (protocol !== 'https:' && protocol !== 'http:') return 'only https is spoken';
    if (username !== '' || password !== '') return 'it has a user name or a password';
    if (hash !== '') return 'it has a fragment';
    const literal = literalAddress(hostname);
    if (literal !== null)
      return this.allows(literal, protocol) ? null : 'its address is not public, or it is not https';
    // Which addresses a name has is asked when something is sent.
    return protocol === 'http:' && this.allowed.length === 0 ? 'it is not https' : null;
  }

  /** @param address as a resolver writes it; `protocol` as in a URL, with its colon */
  allows(address: string, protocol: string): boolean {
    if (!ipaddr.isValid(address)) return false;
    // An IPv4 address that is written as an IPv6 one is judged as what it is.
    const known = ipaddr.process(address);
    if (this.allowed.some(([range, bits]) => isWithin(known, range, bits))) return true;
    // 'unicast' is what no special range has: neither private, loopback, link-local, unique local nor any way to hide one in another.
    return protocol === 'https:' && known.range() === 'unicast' && !METADATA.has(known.toString());
  }
}

/** The host of a URL when it is an address, without brackets; else null. */
export function literalAddress(hostname: string): string | null {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return ipaddr.isValid(bare) ? bare : null;
}

function isWithin(address: Address, range: Address, bits: number): boolean {
  return address.kind() === range.kind() && address.match(range, bits);
}
