#pragma once
// The Lua that servers run for us. Each script touches declared keys only, answers a refusal of a command (ACL, memory,
// a replica) as {-2, command, error, key} instead of failing half-way, and writes the lease's own key last.
#include <algorithm>
#include <array>
#include <string_view>

#include "redlease/types.hpp"
#include "redlease/wire/script.hpp"

namespace redlease {
inline namespace v0 {

namespace lua {

template <const std::string_view&... parts>
struct Joined {
  static constexpr auto text = [] {
    std::array<char, (parts.size() + ...)> all{};
    auto to = all.begin();
    ((to = std::copy(parts.begin(), parts.end(), to)), ...);
    return all;
  }();
  static constexpr std::string_view view{text.data(), text.size()};
};

// KEYS: lease, meta. ARGV: token, ttl in ms, …
inline constexpr std::string_view head = R"(local K,M,tok,ttl=KEYS[1],KEYS[2],ARGV[1],ARGV[2]
local pcall=redis.pcall
local cur=pcall('GET',K)
if type(cur)=='table' then return {-2,'GET',cur.err,K} end
)";

// Meta: "fence token since holder".
inline constexpr std::string_view meta = R"(local m=pcall('GET',M)
if type(m)=='table' then return {-2,'GET',m.err,M} end
)";

// The server's time: sec, now (in microseconds) and nows (as text).
inline constexpr std::string_view time = R"(local t=pcall('TIME')
if t.err then return {-2,'TIME',t.err,K} end
local sec,usec=t[1]+0,t[2]+0
local now,nows=sec*1000000+usec,t[1]..string.format('%06d',usec)
)";

// Never shortens what the server keeps; a key that somebody has made persist gets its expiry back.
inline constexpr std::string_view lengthen = R"(local p=pcall('PTTL',K)
if type(p)=='table' then return {-2,'PTTL',p.err,K} end
if p<ttl+0 then
local r=pcall('PEXPIRE',K,ttl)
if type(r)=='table' then return {-2,'PEXPIRE',r.err,K} end
end
)";

// The next fence: fs, and for how long it is to be remembered: px. Needs m, sec, now, floor. A fence that stands ahead
// of the clock is remembered for so much longer.
inline constexpr std::string_view fence = R"(local c=now+sec*48576
local f=math.max((tonumber(m and string.match(m,'^%d+')) or 0)+1,c,floor+1)
local fs=string.format('%.0f',f)
local px='2592000000'
if f>c then px=string.format('%.0f',2592000000+math.ceil((f-c)/1048.576)) end
)";

// Remembers it. Beyond 2^53 - 2 a number is no longer exact, so that is refused. Needs tok, nows, who.
inline constexpr std::string_view remember_fence = R"(if f>9007199254740990 then return {-3} end
local s=pcall('SET',M,fs..' '..tok..' '..nows..' '..who,'PX',px)
if s.err then return {-2,'SET',s.err,M} end
)";

// Takes a waiter out of the queue, in whichever form it stands there, and answers a refusal: what is left behind would
// be granted the lease. At a key of another type nobody waits. Needs Q, W, mem and tok.
inline constexpr std::string_view leave =
    R"(local z=pcall('ZREM',Q,mem,(string.gsub(mem,'^(%S+ %d+ %d+ %d+) %S+','%1 -')))
if type(z)=='table' and not string.find(z.err,'^WRONGTYPE') then return {-2,'ZREM',z.err,Q} end
pcall('HDEL',W,tok)
)";

// `how` is nil for a try. For waiters it is 'q' (a place in the queue) or 'l' (leave it), and place(remaining, holder,
// now, nows) is what they are answered when another holds the lease. ARGV: member, arrival (0: now), lifetime in ms,
// inbox (-: none). One token has one place: without an inbox the member stands in the queue with "-" for it, with one
// as it is, and never in both forms.
inline constexpr std::string_view acquire_place = R"(local how=ARGV[6]
local leave,place
if how then
leave=function()
local Q,W,mem=KEYS[3],KEYS[4],ARGV[7]
)";

inline constexpr std::string_view acquire_queue = R"(end
place=function(p,who,now,nows)
if how=='l' then return leave() or {0,p,who} end
local Q,W,mem,arr,life,box=KEYS[3],KEYS[4],ARGV[7],ARGV[8],ARGV[9],ARGV[10]
local other=string.gsub(mem,'^(%S+ %d+ %d+ %d+) %S+','%1 -')
if box=='-' then mem,other=other,mem end
local z=pcall('ZADD',Q,'NX',arr=='0' and nows or arr,mem)
if type(z)=='table' then return {-2,'ZADD',z.err,Q} end
if other~=mem then
local r=pcall('ZREM',Q,other)
if type(r)=='table' then return {-2,'ZREM',r.err,Q} end
end
local x=pcall('PEXPIRE',Q,3600000)
if type(x)=='table' then pcall('ZREM',Q,mem) return {-2,'PEXPIRE',x.err,Q} end
if arr=='0' then
arr=nows
if z==0 then arr=string.format('%.0f',tonumber(pcall('ZSCORE',Q,mem)) or now) end
elseif now-arr>=life*333 or now<arr+0 then
local h=pcall('HSET',W,tok,string.format('%.0f',now/1000+life))
if type(h)=='number' then pcall('PEXPIRE',W,3600000) end
end
local n=pcall('ZRANK',Q,mem)
local heard=1
if box~='-' then
local s=pcall('PUBSUB','NUMSUB','redlease:inbox:'..box)
heard=s.err and -1 or s[2]>0 and 1 or 0
end
return {0,p,who,nows,type(n)=='number' and n or 0,arr,heard}
end end
)";

inline constexpr std::string_view acquire_busy = R"(if cur and cur~=tok then
local p=pcall('PTTL',K)
if type(p)=='table' then return {-2,'PTTL',p.err,K} end
local m=pcall('GET',M)
local g=type(m)=='string' and string.match(m,'^%d+ ')
local who=''
if g and string.sub(m,#g+1,#g+#cur+1)==cur..' ' then who=string.match(m,'^%d+ (.*)$',#g+#cur+2) or '' end
if not how then return {0,p,who} end
)";

// Nothing is done behind not-after.
inline constexpr std::string_view acquire_in_time = R"(if ARGV[3]~='0' and now>ARGV[3]+0 then return {-1,nows} end
)";

inline constexpr std::string_view acquire_busy_end = R"(return place(p,who,now,nows)
end
)";

inline constexpr std::string_view acquire_mine = R"(if cur then
)";

// If meta remembers the fence of this very token: g. Ends in an open "then".
inline constexpr std::string_view if_remembered = R"(local g=string.match(m or '','^%d+')
if g and string.sub(m,#g+1,#g+#tok+2)==' '..tok..' ' then )";

inline constexpr std::string_view acquire_mine_end = R"(return {1,g,nows} end
else
local q=pcall('ZCARD',KEYS[3])
if type(q)=='number' and q>0 then
local Q,W=KEYS[3],KEYS[4]
)";

// Hands K over to the first in the queue who can be told, or for whom it is kept until he asks: got=1, and hpx and hwho
// are the new holder's. Those who are dead or cannot hear are passed over, at most 512 a call: then left is nil. The
// fence of the new holder stands in M before K is his, and only then is he told; mute: that was refused. Needs Q and W,
// and in the middle what is to be done before an entry is judged; one of the caller's own token is dropped.
inline constexpr std::string_view over = R"(local got,hpx,hwho,left,mute
for i=1,512 do
local e=pcall('ZPOPMIN',Q)
local h=e[1]
if not h then left=0 break end
local w,wttl,life,floor,box,who=string.match(h,'^(%S+) (%d+) (%d+) (%d+) (%S+) (.*)$')
)";
inline constexpr std::string_view over_if_alive = R"(if w and w~=tok then
local age=(now-e[2])/1000
local live=age>=0 and age<=life+0
if age<0 or age>=life/3 then
local s=tonumber(pcall('HGET',W,w))
pcall('HDEL',W,w)
if s then live=s>=now/1000 end
end
local C='redlease:inbox:'..box
local n=live and box~='-' and pcall('PUBSUB','NUMSUB',C)
local subs=n and not n.err and n[2]
if live and subs~=0 then
)";
inline constexpr std::string_view over_grant = R"(local keep=string.format('%.0f',life/2)
hpx,hwho=subs and wttl or keep,who
local s=f<=9007199254740990 and pcall('SET',M,fs..' '..w..' '..nows..' '..who,'PX',px)
if s and not s.err then s=pcall('SET',K,w,'PX',hpx) end
if not s or s.err then pcall('ZADD',Q,e[2],h) pcall('PEXPIRE',Q,3600000) left=0 break end
if subs then
if type(pcall('PUBLISH',C,w..' '..fs..' '..nows..' '..K))~='number' then
pcall('PEXPIRE',K,keep)
mute=true
end
elseif box~='-' then
pcall('PUBLISH',C,w)
mute=true
end
got,left=1,0
break
end
end
end
)";

inline constexpr std::string_view acquire_own_turn = R"(if w==tok then got,left=2,0 break end
)";

inline constexpr std::string_view acquire_over_end = R"(if got==1 then
if how then return place(hpx+0,hwho,now,nows) end
return {0,hpx+0,hwho}
end
if not left then
if how then return place(0,'',now,nows) end
return {0,0,''}
end
if how then
local z=leave()
if z then return z end
end
end
end
local floor,who=ARGV[4],ARGV[5]
)";

inline constexpr std::string_view acquire_set = R"(if not cur then
local r=pcall('SET',K,tok,'PX',ttl)
if r.err then return {-2,'SET',r.err,K} end
end
return {1,fs,nows}
)";

// Compares the token; not_mine answers 1, gone or taken. What lies between acts on the caller's own.
inline constexpr std::string_view if_mine = R"(local c=redis.pcall('GET',KEYS[1])
if c==ARGV[1] then
)";

inline constexpr std::string_view not_mine = R"(return 1
end
if type(c)=='table' then return {-2,'GET',c.err,KEYS[1]} end
return c and -1 or 0
)";

inline constexpr std::string_view renew = R"(local p=redis.pcall('PTTL',KEYS[1])
if type(p)=='table' then return {-2,'PTTL',p.err,KEYS[1]} end
if p<ARGV[2]+0 then
local r=redis.pcall('PEXPIRE',KEYS[1],ARGV[2])
if type(r)=='table' then return {-2,'PEXPIRE',r.err,KEYS[1]} end
end
)";

inline constexpr std::string_view adopt_mine = R"(if not cur then return {0} end
if cur~=tok then return {-1} end
)";

inline constexpr std::string_view adopt_fence = R"(return {1,g} end
local floor,who='0',''
)";

inline constexpr std::string_view adopt_end = R"(return {1,fs}
)";

inline constexpr std::string_view release_head = R"(local K,M,Q,W,tok=KEYS[1],KEYS[2],KEYS[3],KEYS[4],ARGV[1]
local pcall=redis.pcall
local cur=pcall('GET',K)
local said=1
if cur==tok then
local m,sec,now,nows
)";

// Only with somebody in the queue are meta and the time looked at.
inline constexpr std::string_view release_over_begin = R"(if not now then
m=pcall('GET',M)
if type(m)=='table' then m=false end
local t=pcall('TIME')
if t.err then pcall('ZADD',Q,e[2],h) pcall('PEXPIRE',Q,3600000) break end
sec=t[1]+0
now,nows=sec*1000000+t[2],t[1]..string.format('%06d',t[2])
end
)";

inline constexpr std::string_view release_over_end = R"(if mute then said=2 end
if not got then
local r=pcall('DEL',K)
if type(r)=='table' then return {-2,'DEL',r.err,K} end
end
)";

inline constexpr std::string_view release_end = R"(end
local mem=ARGV[2]
if mem then
)";

inline constexpr std::string_view release_said = R"(end
if cur==tok then return said end
if type(cur)=='table' then return {-2,'GET',cur.err,K} end
return cur and -1 or 0
)";

inline constexpr std::string_view inspect = R"(local g,since,who='0','',''
local p=pcall('PTTL',K)
if type(p)=='table' then return {-2,'PTTL',p.err,K} end
if m then
g=string.match(m,'^%d+') or '0'
if cur and string.sub(m,#g+1,#g+#cur+2)==' '..cur..' ' then
since,who=string.match(m,'^(%d+) (.*)$',#g+#cur+3)
end
end
local q=pcall('ZCARD',KEYS[3])
if type(q)=='table' then q=0 end
local z=q>0 and pcall('ZRANGE',KEYS[3],0,99,'WITHSCORES') or {}
if z.err then z={} end
return {cur and 1 or 0,p,g,since or '',nows,who or '',q,z}
)";

inline constexpr std::string_view break_head = R"(local K,M,Q,W=KEYS[1],KEYS[2],KEYS[3],KEYS[4]
local pcall=redis.pcall
local cur=pcall('GET',K)
if type(cur)=='table' then return {-2,'GET',cur.err,K} end
if not cur then return 0 end
if #cur==0 or #cur>256 then return {-4,#cur} end
local tok,said=cur,1
local m,sec,now,nows
)";

inline constexpr std::string_view break_end = R"(return said
)";

inline constexpr std::string_view fenced_set = R"(local R,pcall=KEYS[1],redis.pcall
local f=pcall('HGET',R,'fence')
if type(f)=='table' then return {-2,'HGET',f.err,R} end
if not f then
local e=pcall('EXISTS',R)
if type(e)=='table' then return {-2,'EXISTS',e.err,R} end
if e==1 then return {-4} end
elseif not string.match(f,'^%d+$') then return {-4}
elseif tonumber(f)>ARGV[1]+0 then return {0,f} end
local r=pcall('HSET',R,'fence',ARGV[1],'value',ARGV[2])
if type(r)=='table' then return {-2,'HSET',r.err,R} end
return {1,ARGV[1]}
)";

}  // namespace lua

struct Scripts {
  // KEYS of those that know the queue: lease, meta, queue, seen.
  //
  // ARGV: token, ttl, not-after in server microseconds (0: none), floor, holder and label; for a waiter also what
  // acquire_place says.
  // {1, fence, now} ours · {0, pttl, holder} busy · {0, pttl, holder, now, ahead, arrival, heard} busy, and queued
  // (heard: 1 the inbox can be reached, 0 it cannot, -1 the server does not tell) · {-1, now} too late, nothing done ·
  // {-3} no fence left
  static constexpr Script acquire{
      lua::Joined<lua::head, lua::acquire_place, lua::leave, lua::acquire_queue, lua::acquire_busy, lua::time,
                  lua::acquire_in_time, lua::acquire_busy_end, lua::meta, lua::time, lua::acquire_in_time,
                  lua::acquire_mine, lua::lengthen, lua::if_remembered, lua::acquire_mine_end, lua::over,
                  lua::acquire_own_turn, lua::over_if_alive, lua::fence, lua::over_grant, lua::acquire_over_end,
                  lua::fence, lua::remember_fence, lua::acquire_set>::view};
  // KEYS: lease. ARGV: token, ttl. 1 renewed · 0 gone · -1 taken
  static constexpr Script renew{lua::Joined<lua::if_mine, lua::renew, lua::not_mine>::view};
  // KEYS: lease, meta. ARGV: token, ttl. {1, fence} renewed · {0} gone · {-1} taken · {-3} no fence left
  static constexpr Script adopt{
      lua::Joined<lua::head, lua::adopt_mine, lua::lengthen, lua::meta, lua::time, lua::if_remembered, lua::adopt_fence,
                  lua::fence, lua::remember_fence, lua::adopt_end>::view};
  // ARGV: token; of a waiter also its member of the queue, which it leaves. 1 released · 2 released, and the
  // next in the queue could not be told · 0 gone · -1 taken
  static constexpr Script release{
      lua::Joined<lua::release_head, lua::over, lua::release_over_begin, lua::over_if_alive, lua::fence,
                  lua::over_grant, lua::release_over_end, lua::release_end, lua::leave, lua::release_said>::view};
  // {held, pttl, fence, since, now, holder and label, waiters, {member, arrival, …} of the first 100}
  static constexpr Script inspect{lua::Joined<lua::head, lua::meta, lua::time, lua::inspect>::view};
  // 1, or 2 as above, removed · 0 nothing there · {-4, size} the value is no token
  static constexpr Script break_lease{
      lua::Joined<lua::break_head, lua::over, lua::release_over_begin, lua::over_if_alive, lua::fence, lua::over_grant,
                  lua::release_over_end, lua::break_end>::view};
  // KEYS: resource. ARGV: fence, value. {1, fence} written · {0, fence} a newer one was there · {-4} holds something
  // else
  static constexpr Script fenced_set{lua::fenced_set};
};

// What "not yours" is in the answers of renew, adopt and release.
constexpr LossCause cause_of(long long code) noexcept { return code == 0 ? LossCause::gone : LossCause::taken; }

}  // namespace v0
}  // namespace redlease
