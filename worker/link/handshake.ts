/**
 * How two agents make sure that each knows the token of one world, without sending it: each sends a random challenge, and
 * proves with an HMAC over both challenges and all names. The first words of the texts differ, so that neither proof can be
 * sent back as the other one.
 *
 *     leader                          member
 *     hello {challenge}          →
 *                                ←    join {names, challenge, proof}
 *     welcome {proof}            →
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { ZerofleetError } from '../../contracts/index.js';
import { type Static, Type } from '../../platform/schema.js';
import type { Link } from './link.js';
import { checked } from './schema.js';

const Hex32 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Name = Type.String({ minLength: 1, maxLength: 200 });
const strict = { additionalProperties: false } as const;

const asHello = checked(Type.Object({ kind: Type.Literal('hello'), challenge: Hex32 }, strict));
const Join = Type.Object(
  {
    kind: Type.Literal('join'),
    world_id: Name,
    worker_id: Name,
    /** Name of the member's machine, for people. */
    host: Name,
    challenge: Hex32,
    proof: Hex32,
  },
  strict,
);
const asJoin = checked(Join);
const asWelcome = checked(Type.Object({ kind: Type.Literal('welcome'), proof: Hex32 }, strict));

/** Who wants to join which world. */
export type Names = Pick<Static<typeof Join>, 'world_id' | 'worker_id' | 'host'>;

/** The member's side. @throws ZerofleetError `link_refused`; Error when the link ended */
export async function joinWorld(link: Link, names: Names, token: string): Promise<void> {
  const theirs = asHello(await link.next()).challenge;
  const challenge = randomBytes(32).toString('hex');
  link.send({ kind: 'join', ...names, challenge, proof: prove('member', token, theirs, challenge, names) });
  const { proof } = asWelcome(await link.next());
  if (!equal(proof, prove('leader', token, theirs, challenge, names))) {
    throw new ZerofleetError('link_refused', 'the leader does not know the token of the world');
  }
}

/**
 * The leader's side.
 * @param tokenOf the token of a world that this worker may join, or null
 * @throws ZerofleetError `link_refused`; Error when the link ended
 */
export async function admitMember(link: Link, tokenOf: (names: Names) => string | null): Promise<Names> {
  const challenge = randomBytes(32).toString('hex');
  link.send({ kind: 'hello', challenge });
  const { kind: _, challenge: theirs, proof, ...names } = asJoin(await link.next());
  const token = tokenOf(names);
  if (token === null || !equal(proof, prove('member', token, challenge, theirs, names))) {
    throw new ZerofleetError(
      'link_refused',
      `${names.worker_id} does not know a token of world ${names.world_id}`,
    );
  }
  link.send({ kind: 'welcome', proof: prove('leader', token, challenge, theirs, names) });
  return names;
}

function prove(role: string, token: string, leaders: string, members: string, names: Names): string {
  const text = JSON.stringify([role, leaders, members, names.world_id, names.worker_id, names.host]);
  return createHmac('sha256', Buffer.from(token, 'hex')).update(text).digest('hex');
}

function equal(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'));
}
