/** Allowed addresses of webhook messages: public addresses over TLS, and ranges allowed by the operator. */
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Public by number, but the metadata service of Azure hosts. */
const METADATA = new Set(['168.63.129.16']);

export class AddressPolicy {
  private readonly allowed: readonly [Address, number][];

  /** @param allowed CIDR ranges, e.g. `10.1.0.0/16`, that are not public and may be reached anyway, also without TLS */
  constructor(allowed: readonly string[]) {
    this.allowed = allowed.map((range) => ipaddr.parseCIDR(range));
  }

  /** Reason to refuse a URL before resolution; null if there is none. */
  objectionTo(url: string): string | null {
    if (!URL.canParse(url)) return 'it is not a URL';
    const { protocol, hostname, username, password, hash } = new URL(url);
    if (protocol !== 'https:' && protocol !== 'http:') return 'only https is supported';
    if (username !== '' || password !== '') return 'it has a user name or a password';
    if (hash !== '') return 'it has a fragment';
    const literal = literalAddress(hostname);
    if (literal !== null)
      return this.allows(literal, protocol) ? null : 'its address is not public, or it is not https';
    // The addresses of a name are checked when a message is sent.
    return protocol === 'http:' && this.allowed.length === 0 ? 'it is not https' : null;
  }

  /** @param address as written by a resolver; `protocol` as in a URL, with its colon */
  allows(address: string, protocol: string): boolean {
    if (!ipaddr.isValid(address)) return false;
    // An IPv4-mapped IPv6 address is checked as IPv4.
    const known = ipaddr.process(address);
    if (this.allowed.some(([range, bits]) => isWithin(known, range, bits))) return true;
    // 'unicast' excludes every special range: private, loopback, link-local, unique local and embedded addresses.
    return protocol === 'https:' && known.range() === 'unicast' && !METADATA.has(known.toString());
  }
}

/** Host of a URL if it is an address, without brackets; else null. */
export function literalAddress(hostname: string): string | null {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return ipaddr.isValid(bare) ? bare : null;
}

function isWithin(address: Address, range: Address, bits: number): boolean {
  return address.kind() === range.kind() && address.match(range, bits);
}
