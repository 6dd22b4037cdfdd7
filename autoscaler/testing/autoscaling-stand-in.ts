/**
 * In-memory stand-in for the calls of EC2 Auto Scaling that the autoscaler makes, over the AWS Query protocol
 * (form in, XML out). Throttling and the age of its answers are configurable. Excluded: signatures.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

interface StandInInstance {
  id: string;
  state: string;
  /** Time that hooks have held it since it began to terminate, or since the last heartbeat. */
  held_seconds?: number;
}

interface StandInGroup {
  name: string;
  desired: number;
  min: number;
  max: number;
  instances: StandInInstance[];
}

export class AutoScalingStandIn {
  readonly groups = new Map<string, StandInGroup>();
  /** Names of termination hooks, by group. */
  readonly hooks = new Map<string, string[]>();
  /** Calls of mutating actions, in order. */
  readonly calls: string[] = [];
  /** Number of next calls that are throttled. */
  throttled = 0;
  /** Number of latest changes that descriptions do not show. */
  stale = 0;
  /** Maximum of instances in all groups. */
  stock = Number.POSITIVE_INFINITY;
  /** Answers of EC2 to launches, by group: no instance is launched then. */
  readonly refusals = new Map<string, string>();
  /** Completing a hook and its heartbeats fail. */
  refusesHooks = false;
  /** Unix time in ms of new activities. */
  now = 0;
  /** Timeout of hooks, restarted by each heartbeat. */
  hookSeconds = 600;
  private readonly history: string[] = [];
  /** Scaling activities by group, newest first. */
  private readonly activities = new Map<string, { failed: string | null; at: number }[]>();
  private count = 0;
  private closeServer: () => Promise<void> = async () => undefined;

  addGroup(name: string, max: number, hooks: string[] = []): StandInGroup {
    const group = { name, desired: 0, min: 0, max, instances: [] };
    this.groups.set(name, group);
    this.hooks.set(name, hooks);
    this.remember();
    return group;
  }

  group(name: string): StandInGroup {
    const group = this.groups.get(name);
    if (!group) throw new Refusal('ValidationError', `AutoScalingGroup name not found - ${name}`);
    return group;
  }

  /**
   * Starts the server.
   * @returns the endpoint
   */
  async listen(): Promise<string> {
    const server = createServer((request, response) => {
      this.answer(request).then(
        ([status, text]) => response.writeHead(status, { 'content-type': 'text/xml' }).end(text),
        () => response.writeHead(500).end(),
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.closeServer = async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    };
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    return this.closeServer();
  }

  /** Advances launches and terminations by one step of each instance. */
  advance(): void {
    for (const group of this.groups.values()) {
      group.instances = group.instances.filter(({ state }) => state !== 'Terminating:Proceed');
      const held = (this.hooks.get(group.name) ?? []).length > 0;
      for (const instance of group.instances) {
        if (instance.state === 'Pending') instance.state = 'InService';
        if (instance.state === 'Terminating')
          instance.state = held ? 'Terminating:Wait' : 'Terminating:Proceed';
      }
      const there = () => group.instances.filter(({ state }) => !state.startsWith('Terminating')).length;
      const all = () => [...this.groups.values()].reduce((sum, { instances }) => sum + instances.length, 0);
      while (there() < group.desired && all() < this.stock && this.launch(group));
    }
    this.remember();
  }

  /** Launches an instance, or notes that EC2 refuses to. */
  private launch(group: StandInGroup): boolean {
    const failed = this.refusals.get(group.name) ?? null;
    const notes = this.activities.get(group.name) ?? [];
    this.activities.set(group.name, [{ failed, at: this.now }, ...notes]);
    if (failed !== null) return false;
    this.count += 1;
    group.instances.push({ id: `i-${String(this.count).padStart(17, '0')}`, state: 'Pending' });
    return true;
  }

  /**
   * Launches the successor of an instance that a rebalancing will terminate: the group is larger than desired
   * meanwhile.
   */
  rebalance(id: string): void {
    this.launch(this.instance(id).group);
    this.remember();
  }

  /** Takes an instance away without hooks, like a failure of its host. */
  lose(id: string): void {
    const { group, instance } = this.instance(id);
    group.instances = group.instances.filter((other) => other !== instance);
    this.remember();
  }

  /** Advances time; hooks that time out release their instances. */
  pass(seconds: number): void {
    for (const instance of [...this.groups.values()].flatMap(({ instances }) => instances)) {
      if (instance.state !== 'Terminating:Wait') continue;
      instance.held_seconds = (instance.held_seconds ?? 0) + seconds;
      if (instance.held_seconds >= this.hookSeconds) instance.state = 'Terminating:Proceed';
    }
    this.remember();
  }

  /**
   * Terminates an instance as a spot interruption or a failed health check does; the desired capacity stays.
   */
  interrupt(id: string): void {
    this.instance(id).instance.state = 'Terminating';
    this.remember();
  }

  private instance(id: string): { group: StandInGroup; instance: StandInInstance } {
    for (const group of this.groups.values()) {
      const instance = group.instances.find((each) => each.id === id);
      if (instance) return { group, instance };
    }
    throw new Refusal(
      'ValidationError',
      `Instance Id not found - No managed instance found for instance ID: ${id}`,
    );
  }

  private remember(): void {
    this.history.push(JSON.stringify([...this.groups.values()]));
  }

  private async answer(request: IncomingMessage): Promise<[status: number, text: string]> {
    let body = '';
    for await (const chunk of request) body += chunk;
    const form = new URLSearchParams(body);
    const action = form.get('Action') ?? '';
    const signed = /^AWS4-HMAC-SHA256 .*\/autoscaling\/aws4_request/.test(
      request.headers.authorization ?? '',
    );
    try {
      if (!signed) throw new Refusal('MissingAuthenticationToken', 'not signed for this service');
      if (this.throttled > 0) {
        this.throttled -= 1;
        throw new Refusal('Throttling', 'Rate exceeded');
      }
      const result = this.perform(action, form);
      const id = `<ResponseMetadata><RequestId>${randomUUID()}</RequestId></ResponseMetadata>`;
      const xmlns = 'xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"';
      return [200, `<${action}Response ${xmlns}>${result}${id}</${action}Response>`];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, message } = error;
      const errorBody = `<Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error>`;
      return [400, `<ErrorResponse>${errorBody}<RequestId>${randomUUID()}</RequestId></ErrorResponse>`];
    }
  }

  private perform(action: string, form: URLSearchParams): string {
    const group = form.get('AutoScalingGroupName') ?? '';
    const instance = form.get('InstanceId') ?? '';
    if (action === 'DescribeAutoScalingGroups') return this.describe(form);
    if (action === 'DescribeLifecycleHooks') return this.describeHooks(group);
    if (action === 'DescribeScalingActivities') return this.describeActivities(group);
    this.calls.push([action, group, form.get('DesiredCapacity'), instance].filter(Boolean).join(' '));
    if (action === 'SetDesiredCapacity') this.setDesired(group, Number(form.get('DesiredCapacity')));
    else if (action === 'TerminateInstanceInAutoScalingGroup') this.terminate(instance);
    else if (action === 'CompleteLifecycleAction') this.waiting(instance).state = 'Terminating:Proceed';
    else if (action === 'RecordLifecycleActionHeartbeat') this.waiting(instance).held_seconds = 0;
    else throw new Refusal('InvalidAction', `no action ${action}`);
    this.remember();
    return `<${action}Result></${action}Result>`;
  }

  private describe(form: URLSearchParams): string {
    const names = [...form]
      .filter(([key]) => key.startsWith('AutoScalingGroupNames.member.'))
      .map(([, name]) => name);
    const then: StandInGroup[] = JSON.parse(
      this.history[Math.max(0, this.history.length - 1 - this.stale)] ?? '[]',
    );
    const found = then.filter(({ name }) => names.includes(name));
    // One group on each page, to test paging.
    const at = Number(form.get('NextToken') ?? 0);
    const members = found
      .slice(at, at + 1)
      .map(groupXml)
      .join('');
    const next = at + 1 < found.length ? `<NextToken>${at + 1}</NextToken>` : '';
    const groups = `<AutoScalingGroups>${members}</AutoScalingGroups>`;
    return `<DescribeAutoScalingGroupsResult>${groups}${next}</DescribeAutoScalingGroupsResult>`;
  }

  private describeHooks(group: string): string {
    const hook = (name: string, transition: string) =>
      `<member><LifecycleHookName>${name}</LifecycleHookName><LifecycleTransition>autoscaling:EC2_INSTANCE_${transition}</LifecycleTransition><HeartbeatTimeout>${this.hookSeconds}</HeartbeatTimeout></member>`;
    const members = (this.hooks.get(group) ?? []).map((name) => hook(name, 'TERMINATING'));
    const hooks = `<LifecycleHooks>${hook('at-launch', 'LAUNCHING')}${members.join('')}</LifecycleHooks>`;
    return `<DescribeLifecycleHooksResult>${hooks}</DescribeLifecycleHooksResult>`;
  }

  private describeActivities(group: string): string {
    const members = (this.activities.get(group) ?? []).map(({ failed, at }, index) => {
      const message = failed === null ? '' : `<StatusMessage>${failed}</StatusMessage>`;
      return (
        `<member><ActivityId>${index}</ActivityId><AutoScalingGroupName>${group}</AutoScalingGroupName>` +
        `<Description>Launching a new EC2 instance</Description><Cause>a user request</Cause>${message}` +
        `<StartTime>${new Date(at).toISOString()}</StartTime><StatusCode>${failed === null ? 'Successful' : 'Failed'}</StatusCode></member>`
      );
    });
    return `<DescribeScalingActivitiesResult><Activities>${members.join('')}</Activities></DescribeScalingActivitiesResult>`;
  }

  private setDesired(name: string, desired: number): void {
    const group = this.group(name);
    if (desired < group.min || desired > group.max)
      throw new Refusal(
        'ValidationError',
        `New SetDesiredCapacity value ${desired} is not between min and max value`,
      );
    group.desired = desired;
  }

  private terminate(id: string): void {
    const { group, instance } = this.instance(id);
    instance.state = 'Terminating';
    group.desired -= 1;
  }

  private waiting(id: string): StandInInstance {
    if (this.refusesHooks) throw new Refusal('ResourceContention', 'another operation is in progress');
    const { instance } = this.instance(id);
    if (instance.state !== 'Terminating:Wait')
      throw new Refusal('ValidationError', `No active Lifecycle Action found with instance ID ${id}`);
    return instance;
  }
}

class Refusal extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

function groupXml({ name, desired, min, max, instances }: StandInGroup): string {
  const member = ({ id, state }: StandInInstance) =>
    `<member><InstanceId>${id}</InstanceId><LifecycleState>${state}</LifecycleState><HealthStatus>Healthy</HealthStatus>` +
    '<AvailabilityZone>eu-central-1a</AvailabilityZone><ProtectedFromScaleIn>true</ProtectedFromScaleIn></member>';
  return (
    `<member><AutoScalingGroupName>${name}</AutoScalingGroupName><MinSize>${min}</MinSize><MaxSize>${max}</MaxSize>` +
    `<DesiredCapacity>${desired}</DesiredCapacity><Instances>${instances.map(member).join('')}</Instances></member>`
  );
}
