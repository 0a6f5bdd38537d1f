"""Statements: one forward pass, environments joined where paths meet, loops until nothing changes.

The tree is the control-flow graph. `run_block` takes the environment before a block and returns the
one after it, or None where its end is not reached. An `if` runs both branches on copies and joins
them; a loop joins the end of its body into its head until the head is stable; `break`, `continue`
and `return` hand their environment to whoever collects it and end the path.

    total = 0                     total: Number
    for x, y in loader:           head, first round: total Number; second: join(Number, Tensor)
        loss = f(model(x), y)     loss: Tensor[gpu, attached]
        total += loss             total: Tensor[gpu, attached]
    print(total)                  total: Tensor[gpu, attached]; loss is still bound
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from gpulint.model.conditions import Rarity, always_leaves, branch_rarity, rarity, without_gpu
from gpulint.model.containers import iterate
from gpulint.model.expressions import assign, evaluate, truth
from gpulint.model.frame import Env, Frame, Jumps, join_env
from gpulint.model.keep import accumulated, augment
from gpulint.model.sites import RegionKind, SiteKind
from gpulint.model.values import NUMBER, UNKNOWN, Kind, Value

ROUNDS = 8  # lattice heights are 2: real code settles in two or three


def run_block(frame: Frame, body: list[ast.stmt], env: Env | None) -> Env | None:
    for position, statement in enumerate(body):
        if env is None:
            return None
        if frame.info is None:
            frame.module.env = env  # functions called from here see the globals as they are now
        if isinstance(statement, ast.If) and position + 1 < len(body):
            after = _skips_the_rest(frame, statement, env)
            if after is not None:
                env = run_statement(frame, statement, env)
                with frame.inside(RegionKind.GUARD, statement, part="rest"):
                    return run_block(frame, body[position + 1 :], env)
        env = run_statement(frame, statement, env)
    return env


def _skips_the_rest(frame: Frame, statement: ast.If, env: Env) -> bool | None:
    """`if step % n: continue` makes the rest of the block the rare branch."""
    if statement.orelse or not always_leaves(statement.body, continues=True):
        return None
    return True if rarity(frame, statement.test, env) is Rarity.COMMON else None


def run_statement(frame: Frame, node: ast.stmt, env: Env) -> Env | None:
    handler = _HANDLERS.get(type(node))
    return handler(frame, node, env) if handler is not None else env


# ---- straight-line statements ------------------------------------------------------------------------


def _expression(frame: Frame, node: ast.Expr, env: Env) -> Env | None:
    evaluate(frame, node.value, env)
    if isinstance(node.value, ast.Call):
        mode = frame.interpreter.gradient_switch(frame, node.value, env)
        if mode is not Ellipsis:
            frame.grad = mode
    return env


def _assign(frame: Frame, node: ast.Assign, env: Env) -> Env | None:
    value = evaluate(frame, node.value, env)
    if len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        value = accumulated(frame, node, node.value, value, env)
    for target in node.targets:
        assign(frame, target, value, env, source=node.value)
    return env


def _annotated(frame: Frame, node: ast.AnnAssign, env: Env) -> Env | None:
    declared = frame.interpreter.annotated(frame, node.annotation)
    if node.value is not None:
        value = evaluate(frame, node.value, env)
        if value.kind is Kind.UNKNOWN and declared.kind is not Kind.UNKNOWN:
            value = declared
        assign(frame, node.target, value, env, source=node.value)
    elif declared.kind is not Kind.UNKNOWN and isinstance(node.target, ast.Name) and frame.info is None:
        env.setdefault(node.target.id, declared)
    return env


def _augmented(frame: Frame, node: ast.AugAssign, env: Env) -> Env | None:
    augment(frame, node, env)
    return env


def _return(frame: Frame, node: ast.Return, env: Env) -> Env | None:
    frame.returns(evaluate(frame, node.value, env) if node.value is not None else Value(Kind.NONE))
    frame.final = join_env(frame.final, env)
    return None


def _raise(frame: Frame, node: ast.Raise, env: Env) -> Env | None:
    with frame.inside(RegionKind.GUARD, node):
        for child in (node.exc, node.cause):
            if child is not None:
                evaluate(frame, child, env)
    return None


def _assert(frame: Frame, node: ast.Assert, env: Env) -> Env | None:
    truth(frame, node.test, env)
    if node.msg is not None:
        with frame.inside(RegionKind.GUARD, node):
            evaluate(frame, node.msg, env)
    return env


def _delete(frame: Frame, node: ast.Delete, env: Env) -> Env | None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            env.pop(target.id, None)
    return env


def _break(frame: Frame, node: ast.Break, env: Env) -> Env | None:
    if frame.jumps:
        frame.jumps[-1].breaks = join_env(frame.jumps[-1].breaks, env)
    return None


def _continue(frame: Frame, node: ast.Continue, env: Env) -> Env | None:
    if frame.jumps:
        frame.jumps[-1].continues = join_env(frame.jumps[-1].continues, env)
    return None


def _global(frame: Frame, node: ast.Global, env: Env) -> Env | None:
    frame.globals.update(node.names)
    return env


def _import(frame: Frame, node: ast.Import, env: Env) -> Env | None:
    for alias in node.names:
        if alias.asname:
            env[alias.asname] = frame.interpreter.imported(frame.module, alias.name)
        else:
            head = alias.name.partition(".")[0]
            env[head] = frame.interpreter.imported(frame.module, head)
    return env


def _import_from(frame: Frame, node: ast.ImportFrom, env: Env) -> Env | None:
    for alias in node.names:
        if alias.name == "*":
            env.update(frame.interpreter.star(frame.module, node.module or "", node.level))
        else:
            env[alias.asname or alias.name] = frame.interpreter.imported_from(
                frame.module, node.module or "", node.level, alias.name
            )
    return env


def _function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> Env | None:
    env[node.name] = frame.interpreter.define_function(frame, node, env)
    return env


def _class(frame: Frame, node: ast.ClassDef, env: Env) -> Env | None:
    env[node.name] = frame.interpreter.define_class(frame, node, env)
    return env


# ---- branches ------------------------------------------------------------------------------------------


def _if(frame: Frame, node: ast.If, env: Env) -> Env | None:
    rare = branch_rarity(frame, node, env)
    value = truth(frame, node.test, env)
    leaves = always_leaves(node.body, returns=frame.region.loop is not None)
    body_kind = RegionKind.GUARD if rare is Rarity.RARE or leaves else RegionKind.BRANCH
    else_kind = RegionKind.GUARD if rare is Rarity.COMMON else RegionKind.BRANCH
    host = without_gpu(node.test)
    if host is not None:  # what runs only without a GPU makes no GPU wait
        body_kind = RegionKind.GUARD if host else body_kind
        else_kind = else_kind if host else RegionKind.GUARD
    known = value.const if isinstance(value.const, bool) else None
    body_env, else_env = dict(env), env
    frame.interpreter.narrow(frame, node.test, body_env)
    with frame.inside(body_kind, node, part="body"):
        after = run_block(frame, node.body, body_env)
    with frame.inside(else_kind, node, part="else"):
        otherwise = run_block(frame, node.orelse, else_env) if node.orelse else else_env
    if known is True and otherwise is not None:
        return after
    return join_env(after, otherwise)


def _match(frame: Frame, node: ast.Match, env: Env) -> Env | None:
    evaluate(frame, node.subject, env)
    result: Env | None = None
    exhaustive = False
    for case in node.cases:
        inner = dict(env)
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                frame.bind(name, UNKNOWN, inner)
        if case.guard is not None:
            truth(frame, case.guard, inner)
        with frame.inside(RegionKind.BRANCH, case):
            result = join_env(result, run_block(frame, case.body, inner))
        exhaustive |= isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
    return result if exhaustive else join_env(result, env)


def _try(frame: Frame, node: ast.Try, env: Env) -> Env | None:
    before = dict(env)
    after = run_block(frame, node.body, env)
    middle = join_env(before, after) or before
    if node.orelse and after is not None:
        after = run_block(frame, node.orelse, after)
    for handler in node.handlers:
        inner = dict(middle)
        if handler.name:
            inner[handler.name] = UNKNOWN
        with frame.inside(RegionKind.GUARD, handler, note="except"):
            after = join_env(after, run_block(frame, handler.body, inner))
    if node.finalbody:
        final = run_block(frame, node.finalbody, dict(after if after is not None else middle))
        return None if after is None else final
    return after


def _with(frame: Frame, node: ast.With | ast.AsyncWith, env: Env) -> Env | None:
    grad = frame.grad
    notes: list[str] = []
    allowed = False
    for item in node.items:
        value = evaluate(frame, item.context_expr, env)
        name, mode = frame.interpreter.context(frame, item.context_expr, value, env)
        notes.append(name)
        allowed |= name in frame.interpreter.settings.allowed_sync
        if mode is not Ellipsis:
            grad = mode
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, frame.interpreter.entered(value), env)
    kind = RegionKind.ALLOWED if allowed else RegionKind.CONTEXT
    with frame.gradients(grad), frame.inside(kind, node, note=" ".join(filter(None, notes))):
        return run_block(frame, node.body, env)


# ---- loops ---------------------------------------------------------------------------------------------


def _for(frame: Frame, node: ast.For | ast.AsyncFor, env: Env) -> Env | None:
    iterable = evaluate(frame, node.iter, env)
    jumps = Jumps()
    head = env
    with frame.inside(RegionKind.LOOP, node):
        element = iterate(frame, iterable, node)
        frame.record(SiteKind.ITERATE, node, receiver=iterable, result=element)
        frame.jumps.append(jumps)
        for _ in range(ROUNDS):
            frame.interpreter.statistics["loop rounds"] += 1
            jumps.continues = jumps.breaks = None
            inner = dict(head)
            assign(frame, node.target, element, inner)
            end = join_env(run_block(frame, node.body, inner), jumps.continues)
            new = join_env(head, end) or head
            if new == head:
                break
            head = new
        else:
            frame.interpreter.statistics["loop cap hits"] += 1
        frame.jumps.pop()
        frame.interpreter.carried(frame, node, env, head)
    after = run_block(frame, node.orelse, dict(head)) if node.orelse else head
    return join_env(after, jumps.breaks)


def _while(frame: Frame, node: ast.While, env: Env) -> Env | None:
    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    jumps = Jumps()
    head = env
    with frame.inside(RegionKind.LOOP, node):
        iterate(frame, NUMBER, node)
        frame.jumps.append(jumps)
        for _ in range(ROUNDS):
            frame.interpreter.statistics["loop rounds"] += 1
            jumps.continues = jumps.breaks = None
            inner = dict(head)
            truth(frame, node.test, inner)
            end = join_env(run_block(frame, node.body, inner), jumps.continues)
            new = join_env(head, end) or head
            if new == head:
                break
            head = new
        else:
            frame.interpreter.statistics["loop cap hits"] += 1
        frame.jumps.pop()
        frame.interpreter.carried(frame, node, env, head)
    if endless:
        return jumps.breaks
    after = run_block(frame, node.orelse, dict(head)) if node.orelse else head
    return join_env(after, jumps.breaks)


_HANDLERS: dict[type[ast.stmt], Callable[..., Env | None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Global: _global,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.If: _if,
    ast.Match: _match,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = _try
